"""The result of `lab overload` for the terminal."""

from collections.abc import Callable, Iterator
from math import nan
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from load_lab.machine.noise import UNSTEADY_RATIO, extremes
from load_lab.overload.overload import (
    MAX_SUCCESS_SHARE,
    MIN_RECOVERY_SECONDS,
    success_share,
)
from load_lab.results.limit import Limit
from load_lab.soak.wording import capacity_text, files, limits_table, noise_warning

_MIB = 1024**2


def overload(document: dict[str, Any]) -> RenderableType:
    """Return what happened in each overload, all of them side by side, then the limits."""
    limit, arms = document["limit"], document["arms"]
    table = Table(
        title=(
            f"{document['scenario']}: capacity {capacity_text(limit)}; then "
            f"{arms[0]['rate']}/s for {arms[0]['spike'][1] - arms[0]['spike'][0]:.0f} s"
        ),
        title_justify="left",
    )
    table.add_column("")
    for arm in arms:
        table.add_column(escape(arm["name"]), justify="right")
    for name, cells in _rows(arms):
        table.add_row(name, *cells)
    warnings = (*_speed_warning(limit, arms), *noise_warning(document))
    texts = [escape(f"{arm['name']}: {what_happened(arm)}") for arm in arms]
    return Group(*texts, table, *limits_table(document["figures"]), *warnings, *files(document))


def what_happened(arm: dict[str, Any]) -> str:
    """Say in one sentence what the load did."""
    share = success_share(arm["goodput"], arm["rate"])
    if share > MAX_SUCCESS_SHARE:
        return (
            f"no overload: {share:.0%} of it was answered well, so the capacity is higher than the "
            "search found."
        )
    queue, slowest, back = arm["most_waiting"], arm["slowest_ms"], arm["seconds_to_normal"]
    parts = [
        "the queue is not visible from here"
        if queue is None
        else f"the queue grew to {queue:,.0f} requests",
        "there was no answer" if slowest is None else f"answers took up to {slowest / 1000:.1f} s",
        f"goodput was {arm['goodput_share']:.0%} of the capacity",
        f"{arm['calm_seconds']:.0f} s after the overload it did not yet answer in time"
        if back is None
        else f"{_normal_after(back)} after the overload it answered in time again",
    ]
    if arm["restarted"]:
        parts.append(f"the main process of {', '.join(arm['restarted'])} ended")
    if arm["dropped"]:
        parts.append(f"k6 could not send {arm['dropped']:,} more, since no virtual user was free")
    return f"{'; '.join(parts)}."


def _rows(arms: list[dict[str, Any]]) -> Iterator[tuple[str, list[str]]]:
    rows: dict[str, Callable[[dict[str, Any]], str]] = {
        "goodput, answers/s": lambda arm: f"{arm['goodput']:.1f}",
        "÷ capacity": lambda arm: f"{arm['goodput_share']:.2f}",
        "p95 of accepted requests": lambda arm: _number(arm["accepted_p95_ms"], " ms"),
        "requests that waited at its end": lambda arm: _number(arm["waiting"], "", "not visible"),
        "answers by status": lambda arm: ", ".join(f"{s}: {n}" for s, n in arm["statuses"].items()),
        "requests that k6 could not send": lambda arm: str(arm["dropped"]),
        "normal again after": lambda arm: _normal_after(arm["seconds_to_normal"]),
        "limited by": lambda arm: Limit(arm["limited_by"]).short,
        "CPU speed, million turns/s": lambda arm: f"{arm['cpu_speed'] or nan:.1f}",
        "memory of the server, MiB": lambda arm: ", ".join(
            f"{size / _MIB:.0f} {when}" for when, size in arm["server_memory"].items()
        ),
        "memory, MiB": lambda arm: ", ".join(
            f"{name} {size / _MIB:.0f}" for name, size in arm["memory_bytes"].items()
        ),
    }
    for name, cell in rows.items():
        if any(cells := [cell(arm) for arm in arms]):
            yield name, cells


def _speed_warning(limit: dict[str, Any], arms: list[dict[str, Any]]) -> Iterator[str]:
    """Warn if the CPU speed differed between the loads: the goodput differs with it."""
    speeds = [(limit["cpu_speed"], "the search for the capacity")]
    speeds += [(arm["cpu_speed"], arm["name"]) for arm in arms]
    speed = extremes(speeds)
    if speed and speed.ratio >= UNSTEADY_RATIO:
        yield (
            f"[yellow]The target's CPUs were {speed.ratio:.2f} times as fast in {speed.fastest} as "
            f"in {speed.slowest}, and goodputs go with them. Measure again when the machine is "
            "steady.[/yellow]"
        )


def _normal_after(seconds: float | None) -> str:
    if seconds is None:
        return "not within the rest"
    minimum = MIN_RECOVERY_SECONDS
    return f"{minimum:.0f} s or less" if seconds <= minimum else f"{seconds:.0f} s"


def _number(value: float | None, unit: str, missing: str = "none") -> str:
    return missing if value is None else f"{value:.0f}{unit}"
