"""The stored sample results, and helpers to change them."""

import json
from pathlib import Path
from typing import Any

from load_lab.experiments.run_folder import CellRun

FOLDER = Path(__file__).parent / "samples/cache-ladder-sample"
Document = dict[str, Any]

CLAIMS: list[Document] = [
    {
        "id": "redis",
        "text": "Redis makes it four times as fast",
        "published": "16 → 81 requests/s",
        "verdict": "holds",
        "measured": {"none": 1.8, "redis": 60.75},
        "holds": "redis >= 4 * none",
        "notes": [],
    },
    {
        "id": "warm",
        "text": "A warm Nginx answers every request",
        "published": "96 % failed",
        "verdict": "does not hold",
        "measured": {"failed": 0.05},
        "holds": "failed == 0",
        "notes": ["naive/nginx-protected-warm/detail is limited by the generator"],
    },
    {
        "id": "article",
        "text": "The journey gains from Redis",
        "published": None,
        "verdict": "not measured",
        "measured": {"none": None},
        "holds": "redis > none",
        "notes": [],
    },
]


def load() -> tuple[Document, list[Document]]:
    """Return a new copy of header and cells."""
    header = json.loads((FOLDER / "experiment.json").read_text())
    return header, [json.loads(p.read_text()) for p in sorted(FOLDER.glob("cells/*/cell.json"))]


def runs(cells: list[Document]) -> list[CellRun]:
    """Return the cells as a store reads them."""
    return [CellRun.of(cell) for cell in cells]


def find_cell(cells: list[Document], name: str) -> Document:
    """Return the first repeat of a cell."""
    return next(cell for cell in cells if cell["name"] == name)


def ladder(count: int = 60, windows: int = 120) -> tuple[Document, list[Document]]:
    """Return a run of `count` measured cells with `windows` windows, as large as a real ladder."""
    header, cells = load()
    codes, layers, loads = ([p["name"] for p in axis["positions"]] for axis in header["axes"])
    names = [f"{code}/{layer}/{load}" for load in loads for code in codes for layer in layers]
    pattern = find_cell(cells, "naive/redis-page/detail")
    documents = [_longer(pattern, name, windows) for name in names[:count]]
    plan = [{"name": cell["name"], "repeat": 1} for cell in documents]
    return {**header, "plan": plan}, documents


def _longer(pattern: Document, name: str, count: int) -> Document:
    axes = dict(zip(("code", "layer", "load"), name.split("/"), strict=True))
    source = pattern["windows"]
    windows = [
        {**source[i * len(source) // count], "end": 5.0 + i, "offered": 1.0 + i * 0.731}
        for i in range(count)
    ]
    return {**pattern, "name": name, "axes": axes, "windows": windows}
