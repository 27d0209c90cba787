"""The report of a run: page, Markdown, pictures, and a JSON document."""

from pathlib import Path
from typing import Any

from load_lab.experiments.claims import evaluate
from load_lab.experiments.report.rows import Cell, Document, build
from load_lab.experiments.report.sections import sections
from load_lab.experiments.run_folder import CellRun, Store
from load_lab.paths import project
from load_lab.results import page
from load_lab.results.blocks import Picture, Section
from load_lab.results.chart_style import save, static_spec

_RESULT_FIELDS = (
    *("rps", "answers_per_second", "goodput", "requests", "successes", "max_rps"),
    *("failed", "failed_ratio", "refused", "unfinished", "retries", "steal"),
    *("p50_ms", "p90_ms", "p95_ms", "p99_ms", "dropped_iterations", "memory_peak_bytes"),
    *("websockets", "limited_by", "outcome", "verdict", "builds", "cache", "capacity"),
    *("cpu_ms_per_request", "bottleneck"),
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
        "files": {name: _as_text(paths) for name, paths in files.items()},
    }


def _cell(cell: Cell, header: Document) -> list[Document]:
    """Return one entry per repeat: measured, failed, not measurable here, or not measured yet."""
    runs = (*cell.impossible, *cell.failures, *cell.runs)
    by_repeat = {run.repeat: run for run in runs}
    repeats = [p["repeat"] for p in header.get("plan", []) if p["name"] == cell.name]
    return [_run(cell, repeat, by_repeat.get(repeat)) for repeat in sorted({*repeats, *by_repeat})]


def _run(cell: Cell, repeat: int, run: CellRun | None) -> Document:
    result = (
        run.result.model_dump(mode="json", include=set(_RESULT_FIELDS))
        if run and run.result
        else {}
    )
    return {
        "name": cell.name,
        "axes": cell.axes,
        "settings": run.settings if run else {},
        "repeat": repeat,
        "state": run.state if run else "missing",
        "error": run.error if run else None,
        **{name: result.get(name) for name in _RESULT_FIELDS},
        "server_cpu_ms": run.result.server_cpu_ms if run and run.result else None,
        "legacy": run.legacy if run else None,
        "builds": result.get("builds", {}),
        "cache": result.get("cache", {}),
    }


def _claim(claim: Document) -> Document:
    names = ("id", "text", "verdict", "basis", "measured", "intervals", "published")
    return {**{name: claim.get(name) for name in names}, "notes": claim.get("notes", [])}


def _as_text(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_as_text(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def write_report(
    header: Document, runs: list[CellRun], claims: list[Document], folder: Path
) -> dict[str, Any]:
    """Write report.html, report.md and pictures/ into `folder`.

    Returns the paths: `html`, `markdown`, and `pictures`, a list (SVG and PNG of each).
    """
    report = build(header, runs, claims)
    report_sections = sections(report)
    folder.mkdir(parents=True, exist_ok=True)
    pictures = _save_pictures(report_sections, folder)
    links = {png.stem: f"pictures/{png.name}" for png in pictures if png.suffix == ".png"}
    html, markdown = folder / "report.html", folder / "report.md"
    title = str(header.get("title") or header.get("experiment") or "Report")
    html.write_text(page.html(title, header.get("run", ""), report_sections, links))
    markdown.write_text(page.markdown(title, report_sections, links))
    return {"html": html, "markdown": markdown, "pictures": pictures}


def _save_pictures(report_sections: list[Section], folder: Path) -> list[Path]:
    target = folder / "pictures"
    target.mkdir(exist_ok=True)
    for old in (*target.glob("*.svg"), *target.glob("*.png")):
        old.unlink()
    blocks = [block for section in report_sections for block in section.blocks]
    images = [_save(block, target) for block in blocks if isinstance(block, Picture)]
    return [path for png in images for path in (png, png.with_suffix(".svg"))]


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
    files = _relative(write_report(header, runs, claims, store.folder))
    return report_document(header, runs, claims, files)


def _relative(files: Any) -> Any:
    """Return paths relative to the project's folder, as in a command line."""
    if isinstance(files, dict):
        return {name: _relative(each) for name, each in files.items()}
    if isinstance(files, list):
        return [_relative(each) for each in files]
    return project().relative(files)
