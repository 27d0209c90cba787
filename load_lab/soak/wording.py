"""Results of `lab overload` and `lab soak` for the terminal."""

from collections.abc import Callable, Iterator
from math import nan
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from load_lab.machine.noise import NOISY_SHARE, UNSTEADY_RATIO, extremes
from load_lab.results.limit import Limit
from load_lab.soak.limits import MIN_RECOVERY_SECONDS

_MIB = 1024**2


def overload(document: dict[str, Any]) -> RenderableType:
    """Return the overload with and without shedding side by side, then the limits."""
    limit, arms = document["limit"], document["arms"]
    table = Table(
        title=(
            f"{document['scenario']}: capacity {_capacity_text(limit)}; then "
            f"{arms[0]['rate']}/s for {arms[0]['spike'][1] - arms[0]['spike'][0]:.0f} s"
        ),
        title_justify="left",
    )
    table.add_column("")
    for arm in arms:
        table.add_column(f"LAB_SHED={arm['shed']}", justify="right")
    for name, cells in _rows(arms):
        table.add_row(name, *cells)
    warnings = (*_speed_warning(limit, arms), *_noise_warning(document))
    return Group(table, *limits_table(document["figures"]), *warnings, *_files(document))


def soak(document: dict[str, Any]) -> RenderableType:
    """Return the load and its result, then the growth against its limits."""
    result, limit = document["result"], document["limit"]
    lines = [
        f"{document['scenario']}: {document['rate']} requests/s{_half_of(limit)}, for "
        f"{document['seconds']:.0f} s; {result['verdict']}",
        f"{result['requests']} requests, {result['failed']} failed, {document['bookings']} "
        f"bookings; p50 {result['p50_ms']} ms, p95 {result['p95_ms']} ms, "
        f"p99 {result['p99_ms']} ms",
    ]
    return Group(
        *lines, *limits_table(document["figures"]), *_noise_warning(document), *_files(document)
    )


def _half_of(limit: dict[str, Any] | None) -> str:
    """Return what the load was half of; empty if its rate was given."""
    return "" if limit is None else f", half of the capacity: {_capacity_text(limit)}"


def _capacity_text(limit: dict[str, Any]) -> str:
    """Return the capacity that a load was based on."""
    return str(limit["headline"])


def _rows(arms: list[dict[str, Any]]) -> Iterator[tuple[str, list[str]]]:
    rows: dict[str, Callable[[dict[str, Any]], str]] = {
        "goodput, answers/s": lambda arm: f"{arm['goodput']:.1f}",
        "÷ capacity": lambda arm: f"{arm['goodput_share']:.2f}",
        "p95 of accepted requests": lambda arm: _number(arm["accepted_p95_ms"], " ms"),
        "answers by status": lambda arm: ", ".join(f"{s}: {n}" for s, n in arm["statuses"].items()),
        "requests that k6 could not send": lambda arm: str(arm["dropped"]),
        "normal again after": lambda arm: _normal_after(arm["seconds_to_normal"]),
        "limited by": lambda arm: Limit(arm["limited_by"]).short,
        "CPU speed, million turns/s": lambda arm: f"{arm['cpu_speed'] or nan:.1f}",
        "memory, MiB": lambda arm: ", ".join(
            f"{name} {size / _MIB:.0f}" for name, size in arm["memory_bytes"].items()
        ),
    }
    for name, cell in rows.items():
        yield name, [cell(arm) for arm in arms]


def _speed_warning(limit: dict[str, Any], arms: list[dict[str, Any]]) -> Iterator[str]:
    """Warn if the CPU speed differed between the loads: the goodput differs with it."""
    speeds = [(limit["cpu_speed"], "the search for the capacity")]
    speeds += [(arm["cpu_speed"], f"LAB_SHED={arm['shed']}") for arm in arms]
    speed = extremes(speeds)
    if speed and speed.ratio >= UNSTEADY_RATIO:
        yield (
            f"[yellow]The target's CPUs were {speed.ratio:.2f} times as fast in {speed.fastest} as "
            f"in {speed.slowest}, and goodputs go with them. Measure again when the machine is "
            "steady.[/yellow]"
        )


def _noise_warning(document: dict[str, Any]) -> Iterator[str]:
    """Warn if the hypervisor took much of the CPU time during the load."""
    share = document["steal"]
    if share >= NOISY_SHARE:
        yield (
            f"[yellow]The hypervisor took {share:.0%} of the CPU time: it may have caused late, "
            "failed or missing requests. Measure again when the machine is quiet.[/yellow]"
        )


def _normal_after(seconds: float | None) -> str:
    if seconds is None:
        return "not within the rest"
    minimum = MIN_RECOVERY_SECONDS
    return f"{minimum:.0f} s or less" if seconds <= minimum else f"{seconds:.0f} s"


def _number(value: float | None, unit: str) -> str:
    return "none" if value is None else f"{value:.0f}{unit}"


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


def _files(document: dict[str, Any]) -> Iterator[str]:
    for name, path in document["files"].items():
        yield f"[dim]{name}:[/dim] {path}"
