"""The result of `lab soak` for the terminal, and what that of an overload shares with it."""

from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from load_lab.machine.noise import NOISY_SHARE


def soak(document: dict[str, Any]) -> RenderableType:
    """Return the load and its result, then the growth against its limits."""
    result, limit = document["result"], document["limit"]
    rows = "".join(f", {count} {name}" for name, count in document["rows"].items())
    lines = [
        f"{document['scenario']}: {document['rate']} requests/s{_half_of(limit)}, for "
        f"{document['seconds']:.0f} s; {result['verdict']}",
        f"{result['requests']} requests, {result['failed']} failed{rows}; p50 {result['p50_ms']} "
        f"ms, p95 {result['p95_ms']} ms, p99 {result['p99_ms']} ms",
    ]
    warnings = (*unseen(document), *noise_warning(document))
    return Group(*lines, *limits_table(document["figures"]), *warnings, *files(document))


def _half_of(limit: dict[str, Any] | None) -> str:
    """Return what the load was half of; empty if its rate was given."""
    return "" if limit is None else f", half of the capacity: {capacity_text(limit)}"


def capacity_text(limit: dict[str, Any]) -> str:
    """Return the capacity that a load was based on."""
    return str(limit["headline"])


def unseen(document: dict[str, Any]) -> Iterator[str]:
    """Name the services that were not observed."""
    for service in document["unseen"]:
        yield f"[yellow]Not observed:[/yellow] {escape(service)}"


def noise_warning(document: dict[str, Any]) -> Iterator[str]:
    """Warn if the hypervisor took much of the CPU time during the load."""
    share = document["steal"]
    if share >= NOISY_SHARE:
        yield (
            f"[yellow]The hypervisor took {share:.0%} of the CPU time: it may have caused late, "
            "failed or missing requests. Measure again when the machine is quiet.[/yellow]"
        )


def limits_table(metrics: list[dict[str, Any]]) -> Iterator[RenderableType]:
    """Yield one row per limit: its name, the limit, the measured value, and whether it passed."""
    table = Table(title_justify="left")
    for name, justify in (("metric", "left"), ("must be", "right"), ("is", "right"), ("", "right")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for metric in metrics:
        sign = "<=" if metric["at_most"] else ">="
        value = "not seen" if metric["value"] is None else f"{metric['value']:g}"
        outcome = "[green]passed[/green]" if metric["kept"] else "[red]failed[/red]"
        table.add_row(metric["what"], f"{sign} {metric['bound']:g}", value, outcome)
    yield table


def files(document: dict[str, Any]) -> Iterator[str]:
    for name, path in document["files"].items():
        yield f"[dim]{name}:[/dim] {path}"
