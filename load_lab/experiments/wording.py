"""Plans and reports of experiments for the terminal."""

import shlex
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from load_lab.experiments.plan import Plan
from load_lab.results.formatting import NONE_IN_TIME, mebibytes, milliseconds, rate
from load_lab.results.limit import Limit

_COLOURS = {
    "holds": "green",
    "does not hold": "red",
    "not decided": "yellow",
    "not measured": "dim",
}


def plan_document(plan: Plan, slowness: float) -> dict[str, Any]:
    """Return the document of `--dry-run`, with durations for a machine of that slowness."""
    cells = [
        {
            "name": cell.name,
            "repeat": repeat,
            "settings": cell.settings,
            "workload": cell.workload.model_dump(exclude_none=True),
            "warm": cell.warm if isinstance(cell.warm, str) else cell.warm.model_dump(),
            "expected_seconds": round(cell.expected_seconds(slowness), 1),
            "command": list(cell.target.command) if cell.target and cell.target.command else None,
        }
        for cell, repeat in plan.todo
    ]
    return {
        "experiment": plan.name,
        "notes": list(plan.notes),
        "cells": cells,
        "expected_seconds": round(plan.seconds(slowness), 1),
        "slowness": round(slowness, 2),
    }


def plan(document: dict[str, Any]) -> RenderableType:
    """Return the cells in their order, and the expected duration."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("cell", overflow="fold")
    for column in ("load", "rate", "for", "warmed by"):
        table.add_column(column, overflow="fold")
    table.add_column("repeat", justify="right")
    for cell in document["cells"]:
        work, warm = cell["workload"], cell["warm"]
        table.add_row(
            cell["name"],
            f"{work['profile']} of {work.get('route') or work['scenario']}",
            str(work.get("rate", "")),
            work["duration"],
            warm if isinstance(warm, str) else f"{warm['profile']} of {warm['scenario']}",
            str(cell["repeat"]),
        )
    minutes = document["expected_seconds"] / 60
    by_name = {cell["name"]: cell["command"] for cell in document["cells"]}
    commands = [f"{name}: {shlex.join(words)}" for name, words in by_name.items() if words]
    speed = f"The machine is now {document['slowness']:.1f} times as slow as an idle reference."
    return Group(
        table,
        *(escape(line) for line in (*commands, *document["notes"])),
        f"{len(document['cells'])} cells, about {minutes:.0f} minutes. {speed} Nothing was run.",
    )


def report(document: dict[str, Any]) -> RenderableType:
    """Return the claims, then the cells, then the files."""
    cells = document["cells"]
    measured = [cell for cell in cells if cell["state"] == "measured"]
    are_searched = bool(measured) and all(cell.get("capacity") for cell in measured)
    table = _capacities(cells) if are_searched else _cells(cells)
    claims = [_claims(document["claims"])] if document["claims"] else []
    parts = [*claims, table, _files(document)]
    return Group(*_warnings(document), *(each for part in parts for each in (part, "")))


def _warnings(document: dict[str, Any]) -> list[str]:
    quick = "[yellow]Quick: durations were scaled down. A preview, not a result.[/yellow]"
    state = f"[yellow]The run is {document['state']}: cells are missing.[/yellow]"
    return [
        *([quick] if document["quick"] else []),
        *([state] if document["state"] != "finished" else []),
    ]


def _claims(claims: list[dict[str, Any]]) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("", "claim", "measured"):
        table.add_column(column)
    for claim in claims:
        colour = _COLOURS[claim["verdict"]]
        values = ", ".join(
            f"{name} {value:,g}" for name, value in claim["measured"].items() if value is not None
        )
        text = "\n".join([values, *claim["notes"]])
        verdict = f"[{colour}]{claim['verdict']}[/{colour}]{_basis(claim)}"
        table.add_row(verdict, escape(claim["text"]), escape(text))
    return table


def _basis(claim: dict[str, Any]) -> str:
    return f"\n({claim['basis']})" if claim.get("basis") else ""


def _cells(cells: list[dict[str, Any]]) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("cell", overflow="fold")
    for column in ("goodput/s", "requests/s", "successes", "failed", "p95 ms", "dropped"):
        table.add_column(column, justify="right", no_wrap=True, min_width=len(column))
    table.add_column("limited by", overflow="fold")
    for cell in cells:
        table.add_row(f"{cell['name']} r{cell['repeat']}", *_metrics(cell))
    return table


def _capacities(cells: list[dict[str, Any]]) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("cell", overflow="fold")
    for column in ("capacity/s", "90 % interval", "CPU ms/request", "memory MiB", "p95 ms"):
        table.add_column(column, justify="right", no_wrap=True, min_width=len(column))
    table.add_column("limited by", overflow="fold")
    for cell in cells:
        table.add_row(f"{cell['name']} r{cell['repeat']}", *_capacity(cell))
    return table


def _capacity(cell: dict[str, Any]) -> list[str]:
    found = cell.get("capacity")
    if found is None:
        return [*[""] * 5, _reason(cell)]
    unconfirmed = "" if found["confirmed"] else ", not confirmed"
    limit = (cell["bottleneck"] or {}).get("headline") or Limit(cell["limited_by"]).short
    return [
        rate(found["rate"]),
        f"{rate(found['low'])} to {rate(found['high'])}{unconfirmed}",
        milliseconds(cell["server_cpu_ms"]),
        mebibytes(cell["memory_peak_bytes"]),
        milliseconds(cell["p95_ms"]),
        escape(limit),
    ]


def _reason(cell: dict[str, Any]) -> str:
    reason = escape(str(cell.get("error") or "not measured"))
    colour = "red" if cell["state"] == "failed" else "dim"
    return f"[{colour}]{reason}[/{colour}]"


def _metrics(cell: dict[str, Any]) -> list[str]:
    if cell.get("rps") is None:
        return [*[""] * 6, _reason(cell)]
    return [
        f"{cell['goodput']:,g}" if cell["goodput"] else NONE_IN_TIME,
        f"{cell['rps']:,g}",
        "" if cell.get("successes") is None else f"{cell['successes']:,}",
        f"{cell['failed_ratio']:.1%}",
        "" if cell.get("p95_ms") is None else f"{cell['p95_ms']:,.0f}",
        f"{cell['dropped_iterations']:,}",
        # A search's answer: the capacity with its interval.
        escape(cell["verdict"]) if cell.get("capacity") else Limit(cell["limited_by"]).short,
    ]


def _files(document: dict[str, Any]) -> RenderableType:
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, path in document["files"].items():
        if isinstance(path, str):
            table.add_row(name, path)
    return table
