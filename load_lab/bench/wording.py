"""The table of `lab bench` for the terminal."""

from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from load_lab.results.ratio import Ratio, error_text

_COLOURS = {"reached": "green", "missed": "red", "void": "yellow", "failed": "red"}
# Smaller shares of packages, in percent, are only in the document.
_MIN_SHARE = 2
_SMALL_MS = 0.1


def bench_table(document: dict[str, Any]) -> RenderableType:
    """Return a table with one row per metric: the limit, then the measured value."""
    table = Table(title=_title(document), title_justify="left")
    for name, justify in (("row", "left"), ("metric", "left"), ("must reach", "right")):
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for name in ("reached", "spread", ""):
        table.add_column(name, justify="right", no_wrap=True)
    for row in document["rows"]:
        for number, metric in enumerate(row["figures"]):
            table.add_row(row["row"] if number == 0 else "", *_cells(metric))
    reasons = [_reason(row, metric) for row in document["rows"] for metric in row["figures"]]
    footer = f"In full: {document['files']['result']}"
    return Group(table, *filter(None, reasons), *_profiles(document["rows"]), footer)


def _profiles(rows: list[dict[str, Any]]) -> Iterator[RenderableType]:
    """Yield where each variant's CPU time goes, if the run recorded profiles."""
    profiles = [(row["row"], profile) for row in rows for profile in row.get("profiles", ())]
    if not profiles:
        return
    table = Table(title="CPU per answer, in ms, and where the workers' goes", title_justify="left")
    services = list(dict.fromkeys(name for _, profile in profiles for name in profile["cpu_ms"]))
    for name in ("row", "way", *services):
        table.add_column(name, justify="right" if name in services else "left", no_wrap=True)
    table.add_column("of the workers' samples, % by package", overflow="fold")
    for number, (row, profile) in enumerate(profiles):
        first = number == 0 or profiles[number - 1][0] != row
        times = (_milliseconds(profile["cpu_ms"].get(name)) for name in services)
        table.add_row(row if first else "", profile["way"], *times, _packages(profile))
    yield table
    for row, profile in profiles:
        if profile["file"]:
            yield f"[dim]{row} {profile['way']}:[/dim] {profile['file']}"


def _milliseconds(value: float | None) -> str:
    """Format with three digits for small values; empty if there is no value."""
    if not value:
        return "" if value is None else "0"
    return f"{value:.2f}" if value >= _SMALL_MS else f"{value:.3f}"


def _packages(profile: dict[str, Any]) -> str:
    shares = [(n, share) for n, share in profile["packages"].items() if share >= _MIN_SHARE]
    return escape(profile["wrong"]) or ", ".join(f"{n or '?'} {share:.0f}" for n, share in shares)


def _title(document: dict[str, Any]) -> str:
    host = document["host"]
    limits = "floors" if document["check"] else "targets"
    shared = " (shared!)" if host["shared_cpus"] else ""
    return (
        f"Ratios of this run against their {limits}: medians of {document['repeats']}, "
        f"{document['seconds']} s each; target on CPU {host['target_cpus']}, load on CPU "
        f"{host['load_cpus']}{shared}"
    )


def _cells(metric: dict[str, Any]) -> tuple[str, ...]:
    sign, unit = "<=" if metric["at_most"] else ">=", metric["unit"]
    values, colour = metric["values"], _COLOURS[metric["outcome"]]
    reached = "–" if metric["reached"] is None else f"{_short(metric['reached'])}{unit}"
    if ratio := metric.get("ratio"):
        reached += f" ± {error_text(Ratio(**ratio).resolution)}"
    spread = f"{_short(min(values))} to {_short(max(values))}" if values else "–"
    outcome = f"[{colour}]{metric['outcome']}[/{colour}]"
    goal = metric.get("goal")
    limit = f"{sign} {metric['limit']:g}{unit}" + (f" (goal {goal:g}{unit})" if goal else "")
    return metric["what"], limit, reached, spread, outcome


def _short(value: float) -> str:
    """Format with two decimals below 100, without decimals from 100 on."""
    return f"{value:.2f}" if abs(value) < 100 else f"{value:.0f}"


def _reason(row: dict[str, Any], metric: dict[str, Any]) -> str:
    if not metric["why"]:
        return ""
    return f"[dim]{row['row']}, {escape(metric['what'])}:[/dim] {escape(metric['why'])}"
