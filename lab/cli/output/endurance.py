"""Results of `lab overload` and `lab soak` for the terminal."""

from collections.abc import Callable, Iterator
from math import nan
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from lab.host.noise import NOISY_SHARE, UNSTEADY_RATIO, extremes
from lab.suites.limits import MIN_RECOVERY_SECONDS

_MIB = 1024**2


def overload(document: dict[str, Any]) -> RenderableType:
    """Return the overload with and without shedding side by side, then the limits."""
    limit, arms = document["limit"], document["arms"]
    table = Table(
        title=(
            f"{document['scenario']}: broke at {limit['rate']:.0f} requests/s with a goodput of "
            f"{limit['goodput']:.0f}/s at best; then {arms[0]['rate']}/s for "
            f"{arms[0]['spike'][1] - arms[0]['spike'][0]:.0f} s"
        ),
        title_justify="left",
    )
    table.add_column("")
    for arm in arms:
        table.add_column(f"LAB_SHED={arm['shed']}", justify="right")
    for name, cells in _rows(arms):
        table.add_row(name, *cells)
    warned = (*_unsteady(limit, arms), *_noise(document))
    return Group(table, *bounds(document["figures"]), *warned, *_files(document))


def soak(document: dict[str, Any]) -> RenderableType:
    """Return the load and its result, then the growth against its limits."""
    result, limit = document["result"], document["limit"]
    said = [
        f"{document['scenario']}: {document['rate']} requests/s{half_of(limit)}, for "
        f"{document['seconds']:.0f} s; {result['verdict']}",
        f"{result['requests']} requests, {result['failed']} failed, {document['bookings']} "
        f"bookings; p50 {result['p50_ms']} ms, p95 {result['p95_ms']} ms, "
        f"p99 {result['p99_ms']} ms",
    ]
    return Group(*said, *bounds(document["figures"]), *_noise(document), *_files(document))


def half_of(limit: dict[str, Any] | None) -> str:
    """Return which rate the load was half of, and why that rate; empty if the rate was given."""
    if limit is None:
        return ""
    why = {
        "none": "which it sustained without breaking",
        "generator_cpu": "that k6 could offer: the stack can sustain more",
    }
    return f", half of the {limit['rate']:.0f}/s {why.get(limit['by'], 'at which it broke')}"


def _rows(arms: list[dict[str, Any]]) -> Iterator[tuple[str, list[str]]]:
    said: dict[str, Callable[[dict[str, Any]], str]] = {
        "goodput, answers/s": lambda arm: f"{arm['goodput']:.1f}",
        "÷ the best before the break": lambda arm: f"{arm['goodput_share']:.2f}",
        "p95 of accepted requests": lambda arm: _number(arm["accepted_p95_ms"], " ms"),
        "answers by status": lambda arm: ", ".join(f"{s}: {n}" for s, n in arm["statuses"].items()),
        "requests that k6 could not send": lambda arm: str(arm["dropped"]),
        "normal again after": lambda arm: _normal_after(arm["seconds_to_normal"]),
        "limited by": lambda arm: arm["limited_by"],
        "CPU speed, million turns/s": lambda arm: f"{arm['cpu_speed'] or nan:.1f}",
        "memory, MiB": lambda arm: ", ".join(
            f"{name} {size / _MIB:.0f}" for name, size in arm["memory_bytes"].items()
        ),
    }
    for name, cell in said.items():
        yield name, [cell(arm) for arm in arms]


def _unsteady(limit: dict[str, Any], arms: list[dict[str, Any]]) -> Iterator[str]:
    """Warn if the CPU speed differed between ramp and overload: the goodput differs with it."""
    speeds = [(limit["cpu_speed"], "the ramp")]
    speeds += [(arm["cpu_speed"], f"LAB_SHED={arm['shed']}") for arm in arms]
    found = extremes(speeds)
    if found and found.ratio >= UNSTEADY_RATIO:
        yield (
            f"[yellow]The target's CPUs were {found.ratio:.2f} times as fast in {found.fastest} as "
            f"in {found.slowest}, and goodputs go with them. Measure again when the machine is "
            "steady.[/yellow]"
        )


def _noise(document: dict[str, Any]) -> Iterator[str]:
    """Warn if the hypervisor took much of the CPU time during the load."""
    share = document["steal"]
    if share >= NOISY_SHARE:
        yield (
            f"[yellow]The hypervisor took {share:.0%} of the CPU time: what was late, refused or "
            "not recorded may be its doing. Measure again when the machine is quiet.[/yellow]"
        )


def _normal_after(seconds: float | None) -> str:
    if seconds is None:
        return "not within the rest"
    soonest = MIN_RECOVERY_SECONDS
    return f"{soonest:.0f} s or less" if seconds <= soonest else f"{seconds:.0f} s"


def _number(value: float | None, unit: str) -> str:
    return "none" if value is None else f"{value:.0f}{unit}"


def bounds(figures: list[dict[str, Any]]) -> Iterator[RenderableType]:
    """Yield one row per limit: its name, the limit, the measured value, and whether it passed."""
    table = Table(title_justify="left")
    for name, how in (("figure", "left"), ("must be", "right"), ("is", "right"), ("", "right")):
        table.add_column(name, justify=how)  # type: ignore[arg-type]
    for each in figures:
        sign = "<=" if each["at_most"] else ">="
        found = "not seen" if each["value"] is None else f"{each['value']:g}"
        kept = "[green]kept[/green]" if each["kept"] else "[red]broken[/red]"
        table.add_row(each["what"], f"{sign} {each['bound']:g}", found, kept)
    yield table


def _files(document: dict[str, Any]) -> Iterator[str]:
    for name, path in document["files"].items():
        yield f"[dim]{name}:[/dim] {path}"
