"""Rendering of the blocks as HTML and Markdown."""

import json
import re
from functools import cache
from typing import Any

import jinja2
import vl_convert
from markupsafe import Markup

from load_lab.results.blocks import Picture, Section
from load_lab.results.chart_style import CONFIG, VEGA_LITE, page_spec

_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("load_lab.results"),
    autoescape=jinja2.select_autoescape(["html"], default=False),
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
)

# Transparent: the page's background follows the reader's theme.
_PAGE_CONFIG = {**CONFIG, "background": None}


def html(title: str, run: str, sections: list[Section], pictures: dict[str, str]) -> str:
    """Return the page as a single file. `pictures`: name → static image, relative to the page."""
    charts = {
        f"{block.name}-{i}": page_spec(panel)
        for section in sections
        for block in section.blocks
        if isinstance(block, Picture)
        for i, panel in enumerate(block.panels)
    }
    return _TEMPLATES.get_template("page.html").render(
        title=title,
        run=run,
        sections=sections,
        pictures=pictures,
        charts=_script_json(charts),
        config=_script_json(_PAGE_CONFIG),
        # From vl-convert; it contains no text of a result.
        libraries=Markup(_libraries() if charts else ""),  # noqa: S704
    )


def markdown(title: str, sections: list[Section], pictures: dict[str, str]) -> str:
    _TEMPLATES.filters["md"] = plain
    text = _TEMPLATES.get_template("page.md").render(
        title=title, sections=sections, pictures=pictures
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def plain(text: str) -> str:
    """Escape text, so that Markdown shows it unchanged, also in a table."""
    line = " ".join(str(text).split())
    escaped = re.sub(r"([\\`*_\[\]|~#])", r"\\\1", line)
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


@cache
def _libraries() -> str:
    """Return the JavaScript libraries; cached, since they take a second and never change."""
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE)


def _script_json(document: Any) -> Markup:
    """Return JSON that can't close its script element."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - every character that HTML reads is escaped
