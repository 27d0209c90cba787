"""The report for programs: one JSON document."""

from pathlib import Path
from typing import Any

from lab.report.model import Cell, Document, build

_FIGURES = (
    *("rps", "answers_per_second", "goodput", "requests", "successes", "max_rps"),
    *("failed", "failed_ratio", "unfinished", "retries", "steal"),
    *("p50_ms", "p90_ms", "p95_ms", "p99_ms", "dropped_iterations", "memory_peak_bytes"),
    *("websockets", "legacy"),
)


def report_document(
    header: Document, cells: list[Document], claims: list[Document], files: dict[str, Any]
) -> Document:
    """What was measured and which claims hold; a figure that is missing is null."""
    report = build(header, cells, claims)
    return {
        **{name: header.get(name) for name in ("experiment", "run", "state", "quick")},
        "cells": [entry for cell in report.cells for entry in _cell(cell, header)],
        "claims": [_claim(claim) for claim in claims],
        "files": {name: _paths(found) for name, found in files.items()},
    }


def _cell(cell: Cell, header: Document) -> list[Document]:
    """One entry per repeat: measured, failed, not measured here, or still to be measured."""
    found = (*cell.impossible, *cell.failures, *cell.runs)
    stored = {run.get("repeat", 1): run for run in found}
    planned = [p["repeat"] for p in header.get("plan", []) if p["name"] == cell.name]
    return [_run(cell, repeat, stored.get(repeat)) for repeat in sorted({*planned, *stored})]


def _run(cell: Cell, repeat: int, run: Document | None) -> Document:
    found = run or {}
    return {
        "name": cell.name,
        "axes": cell.axes,
        "settings": found.get("settings", {}),
        "repeat": repeat,
        "state": found.get("state", "missing"),
        "error": found.get("error"),
        **{name: found.get(name) for name in _FIGURES},
        "limited_by": found.get("limited_by"),
        "outcome": found.get("outcome"),
        "verdict": found.get("verdict"),
        "builds": found.get("builds", {}),
        "cache": found.get("cache", {}),
    }


def _claim(claim: Document) -> Document:
    names = ("id", "text", "verdict", "measured", "published")
    return {**{name: claim.get(name) for name in names}, "notes": claim.get("notes", [])}


def _paths(found: Any) -> Any:
    if isinstance(found, list | tuple):
        return [_paths(one) for one in found]
    return str(found) if isinstance(found, Path) else found
