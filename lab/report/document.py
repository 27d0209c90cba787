"""The report of a run: page, Markdown, pictures, and a JSON document."""

from pathlib import Path
from typing import Any

from lab.charts.style import save, static_spec
from lab.experiments.claims import evaluate
from lab.experiments.store import CellRun, Store
from lab.paths import ROOT
from lab.report import page
from lab.report.blocks import Picture, Section
from lab.report.model import Cell, Document, build
from lab.report.sections import sections

_OF_RESULT = (
    *("rps", "answers_per_second", "goodput", "requests", "successes", "max_rps"),
    *("failed", "failed_ratio", "unfinished", "retries", "steal"),
    *("p50_ms", "p90_ms", "p95_ms", "p99_ms", "dropped_iterations", "memory_peak_bytes"),
    *("websockets", "limited_by", "outcome", "verdict", "builds", "cache"),
)


def report_document(
    header: Document, runs: list[CellRun], claims: list[Document], files: dict[str, Any]
) -> Document:
    """Return the measured cells and the verdicts of the claims; a missing metric is null."""
    report = build(header, runs, claims)
    return {
        **{name: header.get(name) for name in ("experiment", "run", "state", "quick")},
        "cells": [entry for cell in report.cells for entry in _cell(cell, header)],
        "claims": [_claim(claim) for claim in claims],
        "files": {name: _paths(found) for name, found in files.items()},
    }


def _cell(cell: Cell, header: Document) -> list[Document]:
    """Return one entry per repeat: measured, failed, not measurable here, or not measured yet."""
    found = (*cell.impossible, *cell.failures, *cell.runs)
    stored = {run.repeat: run for run in found}
    planned = [p["repeat"] for p in header.get("plan", []) if p["name"] == cell.name]
    return [_run(cell, repeat, stored.get(repeat)) for repeat in sorted({*planned, *stored})]


def _run(cell: Cell, repeat: int, run: CellRun | None) -> Document:
    result = (
        run.result.model_dump(mode="json", include=set(_OF_RESULT)) if run and run.result else {}
    )
    return {
        "name": cell.name,
        "axes": cell.axes,
        "settings": run.settings if run else {},
        "repeat": repeat,
        "state": run.state if run else "missing",
        "error": run.error if run else None,
        **{name: result.get(name) for name in _OF_RESULT},
        "legacy": run.legacy if run else None,
        "builds": result.get("builds", {}),
        "cache": result.get("cache", {}),
    }


def _claim(claim: Document) -> Document:
    names = ("id", "text", "verdict", "measured", "published")
    return {**{name: claim.get(name) for name in names}, "notes": claim.get("notes", [])}


def _paths(found: Any) -> Any:
    if isinstance(found, list | tuple):
        return [_paths(one) for one in found]
    return str(found) if isinstance(found, Path) else found


def write_report(
    header: Document, runs: list[CellRun], claims: list[Document], folder: Path
) -> dict[str, Any]:
    """Write report.html, report.md and pictures/ into `folder`.

    Returns the paths: `html`, `markdown`, and `pictures`, a list (SVG and PNG of each).
    """
    report = build(header, runs, claims)
    found = sections(report)
    folder.mkdir(parents=True, exist_ok=True)
    pictures = _save_pictures(found, folder)
    links = {png.stem: f"pictures/{png.name}" for png in pictures if png.suffix == ".png"}
    html, markdown = folder / "report.html", folder / "report.md"
    title = str(header.get("title") or header.get("experiment") or "Report")
    html.write_text(page.html(title, header.get("run", ""), found, links))
    markdown.write_text(page.markdown(title, found, links))
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


def report_of(store: Store) -> dict[str, Any]:
    """Write the report of a stored run, and return its document.

    Raises:
        LabError: a file of the run can't be read.
    """
    header, runs = store.header(), store.cells()
    claims = evaluate(header["claims"], runs)
    files = write_report(header, runs, claims, store.folder)
    document = report_document(header, runs, claims, files)
    return {**document, "files": _relative(document["files"])}


def _relative(found: Any) -> Any:
    """Return paths relative to the project's root, as in a command line."""
    if isinstance(found, dict):
        return {name: _relative(value) for name, value in found.items()}
    if isinstance(found, list | tuple):
        return [_relative(value) for value in found]
    return str(found).removeprefix(f"{ROOT}/")
