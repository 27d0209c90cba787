"""A comparison for the terminal, and in Markdown for a pull request."""

from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from lab.analysis.formatting import mebibytes, milliseconds, percent

_LABELS: dict[str, tuple[str, Callable[[float | None], str]]] = {
    "cpu_ms": ("CPU per request, ms", milliseconds),
    "p50_ms": ("p50, ms", milliseconds),
    "p95_ms": ("p95, ms", milliseconds),
    "p99_ms": ("p99, ms", milliseconds),
    "memory_bytes": ("memory of the server, MiB", mebibytes),
}
_COLUMNS = ("", "A", "B", "B ÷ A", "interval (98 %)", "verdict")


def comparison(document: dict[str, Any]) -> RenderableType:
    """Return the verdict, then the ratios, then what they rest on."""
    table = Table(title_justify="left")
    for column in _COLUMNS:
        table.add_column(column, justify="left" if column in ("", "verdict") else "right")
    for row in _rows(document):
        table.add_row(*row)
    below = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, value in _facts(document):
        below.add_row(name, escape(value))
    for name, path in document["files"].items():
        below.add_row(name, path)
    return Group(f"[bold]{escape(document['headline'])}[/bold]", table, below)


def markdown(document: dict[str, Any]) -> str:
    """Return the comparison as Markdown, such as a pull request's comment."""
    lines = [
        f"**{document['headline']}**",
        "",
        f"| {' | '.join(_COLUMNS)} |",
        "|---|--:|--:|--:|--:|---|",
        *(f"| {' | '.join(row)} |" for row in _rows(document)),
        "",
        *(f"- {name}: {value}" for name, value in _facts(document)),
    ]
    return "\n".join(lines) + "\n"


def _rows(document: dict[str, Any]) -> Iterator[list[str]]:
    sides = document["sides"]
    for name, (label, text) in _LABELS.items():
        ratio = document["ratios"][name]
        verdict = ratio["verdict"] if ratio and name in document["judged"] else ""
        yield [
            label,
            text(sides["a"][name]),
            text(sides["b"][name]),
            f"{ratio['ratio']:.3f}" if ratio else "–",
            f"{ratio['low']:.3f} to {ratio['high']:.3f}" if ratio else "–",
            verdict,
        ]
    if capacity := document.get("capacity"):
        yield _capacity(capacity)
    for name in ("failed", "late"):
        shares = [_share(sides[side], name) for side in "ab"]
        yield [f"{name}, %", *shares, "", "", ""]


def _capacity(capacity: dict[str, Any]) -> list[str]:
    """Return the row of the capacities; more is better, unlike what a request costs."""
    row = ["capacity", *(capacity["headlines"][side] for side in "ab")]
    ratio = capacity.get("ratio")
    if ratio is None:
        return [*row, "–", "–", ""]
    low, high = 1 / ratio["high"], 1 / ratio["low"]
    return [*row, f"{1 / ratio['ratio']:.3f}", f"{low:.3f} to {high:.3f} (90 %)", ""]


def _share(side: dict[str, Any], name: str) -> str:
    return percent(side[name] / side["requests"]) if side["requests"] else "–"


def _facts(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for side in "ab":
        variant = document[side]
        commit = f" ({variant['commit'][:10]})" if variant["commit"] else ""
        yield side.upper(), f"{variant['name']}{commit}"
    yield (
        "measured",
        f"{document['scenario']}, {document['how']}, {document['rate']:g} requests/s each, "
        f"{len(document['blocks'])} restarts in {document['seconds']:.0f} s",
    )
    if document["control"] and not document["is_control"]:
        ratios = ", ".join(f"{ratio:.3f}" for ratio in document["control"])
        yield "A against A", f"{ratios} × the CPU per request, in the same session"
    host = document["host"]
    yield "machine", f"{host['cpus']} CPUs, steal {percent(document.get('steal', 0.0))} %"
