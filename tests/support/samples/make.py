"""Create the stored results that the report's tests read:

.venv/bin/python -m tests.support.samples.make [FOLDER]

With a folder as argument, write a whole ladder of 72 cells there, for manual inspection.
"""

import json
import sys
from pathlib import Path
from typing import Any

from tests.support.samples.cells import CODES, LAYERS, LOADS, cell, failed


def header() -> dict[str, Any]:
    plan = [f"{c}/{layer}/{load}" for load in LOADS for c in CODES for layer in LAYERS]
    return {
        "schema_version": 1,
        "run": "cache-ladder-20261121-101500-ab12",
        "experiment": "cache-ladder",
        "title": "What each cache layer buys",
        "question": "How many requests per second does each cache layer add, and at what price?",
        "source": "The article on caching in Django that this ladder repeats",
        "started": "2026-11-21T10:15:00+00:00",
        "ended": "2026-11-21T12:05:00+00:00",
        "state": "finished",
        "quick": False,
        "repeats": 1,
        "definition": 'title = "What each cache layer buys"\n\n[[axes]]\nname = "code"\n',
        "axes": [
            {"name": name, "positions": [{"name": n, "title": t} for n, t in titles.items()]}
            for name, titles in (("code", CODES), ("layer", LAYERS), ("load", LOADS))
        ],
        "plan": [{"name": name, "repeat": 1} for name in plan],
        "excluded": [{"cells": ["fast/local/booking"], "because": "A booking is never cached."}],
        "bounds": {"p95_ms": 1000, "error_ratio": 0.01, "achieved_ratio": 0.95},
        "engine": "native",
        "host": {
            "cpus": 2,
            "memory_bytes": 8_321_499_136,
            "system": "Linux-6.1.0-x86_64-with-glibc2.36",
            "target_cpus": "0",
            "load_cpus": "1",
            "shared_cpus": False,
            "commit": "52f3e3d",
            "model": "AMD EPYC",
        },
        "versions": {"nginx": "1.22.1", "redis": "7.0.15", "postgres": "15.14", "k6": "1.8.1"},
        "warnings": ["steal time 3 % while idle"],
        "published": [
            _published("none", "no cache", 16, 60_000, 0.70),
            _published("redis-page", "Redis", 81, 11_000, 0),
            _published("nginx-basic-cold", "Nginx, cold", 363, 60_000, 0.83),
            _published("nginx-basic-stage", "Nginx, warmed", 734, 58_000, 0.96),
        ],
        "claims": [],
    }


def _published(layer: str, label: str, rps: float, p95: float, failed: float) -> dict[str, Any]:
    cell = f"naive/{layer}/article"
    return {"cell": cell, "label": label, "rps": rps, "p95_ms": p95, "failed_ratio": failed}


def small() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return eight planned cells of every kind: limited, repeated, failed, missing."""
    cells = [
        cell("naive/none/detail"),
        cell("naive/redis-page/detail"),
        cell("naive/redis-page/detail", repeat=2, scale=1.1),
        cell("naive/nginx-basic-cold/detail", limited_by="vu_cap"),
        cell("naive/nginx-protected-warm/detail"),
        cell("fast/none/detail"),
        cell("fast/redis-page/detail"),
        failed(
            "fast/nginx-protected-warm/detail", "The cache layer nginx is not on: no X-Cache-Status"
        ),
    ]
    document = header()
    plan = [{"name": c["name"], "repeat": c["repeat"]} for c in cells]
    return {**document, "plan": [*plan, {"name": "naive/none/article", "repeat": 1}]}, cells


def full_ladder() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return every cell of the ladder; one failed, one missing."""
    document = header()
    names = [planned["name"] for planned in document["plan"]]
    cells = [cell(name) for name in names if name != "fast/local/list"]
    cells[5] = failed(cells[5]["name"], "k6 ended with exit code 107: <script>alert(1)</script>")
    return document, cells


def write(header: dict[str, Any], cells: list[dict[str, Any]], folder: Path) -> None:
    (folder / "cells").mkdir(parents=True, exist_ok=True)
    (folder / "experiment.json").write_text(json.dumps(header, indent=1) + "\n")
    for number, entry in enumerate(cells, 1):
        name = f"{number:03}-{entry['name'].replace('/', '+')}.r{entry['repeat']}"
        (folder / "cells" / name).mkdir(exist_ok=True)
        (folder / "cells" / name / "cell.json").write_text(json.dumps(entry) + "\n")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        write(*full_ladder(), Path(sys.argv[1]))
    else:
        write(*small(), Path(__file__).parent / "cache-ladder-sample")
