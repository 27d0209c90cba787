"""The result of one run for the terminal."""

from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from lab.analysis.breakpoint import BreakPoint
from lab.analysis.completeness import Completeness
from lab.analysis.result import METRICS, Result, Staleness, WebSockets
from lab.host.noise import NOISY_SHARE
from lab.suites.single_run import SingleRun


def run(measured: SingleRun) -> RenderableType:
    """Return the verdict, then the metrics, then the files."""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, value in _metrics(measured).items():
        table.add_row(name, value)
    return Group(f"[bold]{escape(measured.result.verdict)}[/bold]", table)


def profile(document: dict[str, Any]) -> RenderableType:
    """Return the CPU cost of a request, then its hottest functions."""
    per_request = document["cpu_ms_per_request"]
    cost = (
        f"{document['scenario']}: {per_request} ms of CPU per request ({document['requests']} in "
        f"{document['seconds']} s, {document['failed']} failed; {document['samples']} samples)"
    )
    table = Table(title="The ten hottest functions", title_justify="left")
    for name in ("self %", "with callees %"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("function", overflow="fold")
    for hot in document["hottest"]:
        where = f"{escape(hot['function'])} [dim]{hot['where']}[/dim]"
        table.add_row(f"{hot['self_percent']:.1f}", f"{hot['cumulative_percent']:.1f}", where)
    files = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, path in document["files"].items():
        files.add_row(name, path)
    return Group(f"[bold]{escape(cost)}[/bold]", table, files)


def _metrics(measured: SingleRun) -> dict[str, str]:
    result, host = measured.result, measured.host
    pinned = f"target on CPU {host['target_cpus']}, load on CPU {host['load_cpus']}"
    metrics = {
        METRICS["requests"].label: f"{result.requests} in {result.seconds} s ({result.rps}/s)"
        + (", stopped early, soon after the break" if result.stopped_after else ""),
        METRICS["successes"].label: _successes(result),
        METRICS["goodput"].label: (
            f"at best {result.goodput}/s, on average {result.goodput_mean}/s, "
            f"within {measured.bounds.p95_ms:.0f} ms"
        ),
        METRICS["failed_ratio"].label: _failed(result),
        "response time": _times(p50=result.p50_ms, p95=result.p95_ms, p99=result.p99_ms),
        METRICS["dropped_iterations"].label: str(result.dropped_iterations),
        "in Prometheus": _recorded(result.recorded),
        "limited by": result.limited_by + _cpu_at_break(result.break_point),
        "machine": f"{host['cpus']} CPUs; {pinned}{' (shared!)' if host['shared_cpus'] else ''}"
        + _stolen(result.steal),
    }
    return metrics | _staleness(result.staleness) | _websockets(result.websockets) | measured.files


def _successes(result: Result) -> str:
    if result.max_rps is None:
        return str(result.successes)
    return f"{result.successes}, {result.max_rps}/s in the best 5 s"


def _failed(result: Result) -> str:
    parts = [str(result.failed)]
    if result.retries:
        parts.append(f"{result.retries} of them sent again")
    if result.unfinished is not None:
        parts.append(f"{result.unfinished} unfinished at stop")
    return "; ".join(parts)


def _websockets(found: WebSockets | None) -> dict[str, str]:
    if found is None:
        return {}
    messages = (
        f"{found.connections} held, {found.closed} closed early; of {found.expected} messages due "
        f"{found.lost} lost, {found.doubled} came twice"
    )
    delays = _times(p50=found.delay_p50_ms, p95=found.delay_p95_ms, most=found.delay_max_ms)
    return {"WebSockets": messages, "commit to message": delays}


def _times(**times: float | None) -> str:
    """Format the times with their names; None means that no request ended."""
    known = [f"{name} {value} ms" for name, value in times.items() if value is not None]
    return ", ".join(known) or "nothing ended that took any"


def _staleness(found: Staleness | None) -> dict[str, str]:
    if found is None:
        return {}
    seen = (
        f"{found.seen} bookings seen after p50 {found.p50_ms:.0f} ms, p95 {found.p95_ms:.0f} ms, "
        f"at most {found.max_ms:.0f} ms"
    )
    return {"staleness": f"{seen}; {found.unseen} not seen in time"}


def _recorded(found: Completeness | None) -> str:
    if found is None:
        return "not known"
    return (
        f"all {found.k6} requests, setup's included" if found.complete else f"NOT ALL: {found.text}"
    )


def _stolen(share: float) -> str:
    return (
        f"; noisy: the hypervisor took {share:.0%} of the CPU time" if share >= NOISY_SHARE else ""
    )


def _cpu_at_break(found: BreakPoint | None) -> str:
    if found is None or found.target_cpu is None or found.generator_cpu is None:
        return ""
    return f" (target CPUs {found.target_cpu:.0%} busy, generator CPUs {found.generator_cpu:.0%})"
