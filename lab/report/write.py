"""The files of a report."""

from pathlib import Path
from typing import Any

from lab.charts.style import save, static_spec
from lab.report import page
from lab.report.blocks import Picture, Section
from lab.report.model import Document, build
from lab.report.sections import sections


def write_report(
    header: Document, cells: list[Document], claims: list[Document], folder: Path
) -> dict[str, Any]:
    """Write report.html, report.md and pictures/ into `folder`.

    Returns the paths: `html`, `markdown`, and `pictures`, a list (SVG and PNG of each).
    """
    report = build(header, cells, claims)
    found = sections(report)
    folder.mkdir(parents=True, exist_ok=True)
    pictures = _save_pictures(found, folder)
    links = {png.stem: f"pictures/{png.name}" for png in pictures if png.suffix == ".png"}
    html, markdown = folder / "report.html", folder / "report.md"
    html.write_text(page.html(report, found, links))
    markdown.write_text(page.markdown(report, found, links))
    return {"html": html, "markdown": markdown, "pictures": pictures}


def _save_pictures(found: list[Section], folder: Path) -> list[Path]:
    target = folder / "pictures"
    target.mkdir(exist_ok=True)
    for old in (*target.glob("*.svg"), *target.glob("*.png")):
        old.unlink()
    blocks = [block for section in found for block in section.blocks]
    saved = [_save(block, target) for block in blocks if isinstance(block, Picture)]
    return [path for png in saved for path in (png, png.with_suffix(".svg"))]


def _save(picture: Picture, target: Path) -> Path:
    spec = static_spec(picture.panels, picture.columns, picture.title, picture.caption)
    return save(spec, target / picture.name)
