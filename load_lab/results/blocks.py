"""The blocks of a page. HTML and Markdown are two renderings of the same blocks."""

import re
from base64 import b64encode
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Tone = Literal["plain", "good", "bad", "unsure", "warning"]


@dataclass(frozen=True)
class Entry:
    """One field of a table. The tone colours it; the text must be sufficient without it."""

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True)
class Column:
    title: str
    number: bool = False


@dataclass(frozen=True)
class Table:
    columns: tuple[Column, ...]
    rows: list[tuple[Entry, ...]]
    caption: str = ""
    dense: bool = False  # for many narrow columns: fields are not wrapped
    kind: str = "table"


@dataclass(frozen=True)
class Paragraph:
    text: str
    tone: Tone = "plain"
    kind: str = "paragraph"


@dataclass(frozen=True)
class Items:
    texts: list[str]
    kind: str = "items"


@dataclass(frozen=True)
class Code:
    text: str
    kind: str = "code"


@dataclass(frozen=True)
class Key:
    """One entry of a legend, with its colour and form."""

    label: str
    colour: str
    form: Literal["line", "bar", "circle", "square", "diamond", "triangle-up"] = "line"
    dash: tuple[int, ...] = ()
    open: bool = False


@dataclass(frozen=True)
class Picture:
    """A picture of one or more panels; `panels` has the Vega-Lite of each, without a width."""

    name: str
    title: str
    alt: str
    caption: str
    panels: list[dict[str, Any]]
    legend: list[Key] = field(default_factory=list)
    columns: int = 2
    kind: str = "picture"


@dataclass(frozen=True)
class Image:
    """A chart as a file: the Markdown links to the PNG (`link`), the page contains the SVG."""

    link: str
    svg: Path
    alt: str
    caption: str
    kind: str = "image"

    @property
    def data_url(self) -> str:
        """Return the SVG as a data URL, so that the page is a single file."""
        return f"data:image/svg+xml;base64,{b64encode(self.svg.read_bytes()).decode()}"


Block = Table | Paragraph | Items | Code | Picture | Image


@dataclass(frozen=True)
class Section:
    title: str
    anchor: str
    blocks: list[Block]
    level: int = 2


def slug(*names: str) -> str:
    """Join the names to one file name or anchor; empty names are omitted."""
    return "-".join(re.sub(r"[^\w-]+", "-", name) for name in names if name)


def entries(*texts: str | Entry) -> tuple[Entry, ...]:
    return tuple(text if isinstance(text, Entry) else Entry(text) for text in texts)


def columns(*titles: str) -> tuple[Column, ...]:
    """Return columns; a title with a leading `#` is a column of numbers."""
    return tuple(Column(title.removeprefix("#"), title.startswith("#")) for title in titles)
