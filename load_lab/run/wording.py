"""The result of one run for the terminal."""

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from load_lab.diagnosis.wording import bottleneck_lines
from load_lab.machine.noise import NOISY_SHARE
from load_lab.metrics.windows import WINDOW_SECONDS
from load_lab.results.breakpoint import BreakPoint
from load_lab.results.completeness import Completeness
from load_lab.results.operations import first_exceeded
from load_lab.results.result import METRICS, Result, Staleness, WebSockets
from load_lab.run.single_run import SingleRun

# The services that cost least per request are left to the JSON document.
_SHOWN_COSTS = 4


def run(single_run: SingleRun) -> RenderableType:
    """Return the verdict, then the metrics, then the files."""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, value in _metrics(single_run).items():
        table.add_row(name, value)
    result = single_run.result
    lines = (escape(line) for line in bottleneck_lines(result.bottleneck))
    return Group(f"[bold]{escape(result.verdict)}[/bold]", *lines, table)


def _early_end(result: Result) -> str:
    if not result.stopped_after or result.outcome == "interrupted":
        return ""
    return (
        f", stopped early, soon after {'its pages changed' if result.page_change else 'the break'}"
    )


def _metrics(single_run: SingleRun) -> dict[str, str]:
    result, host = single_run.result, single_run.host
    pinned = f"target on CPU {host['target_cpus']}, load on CPU {host['load_cpus']}"
    metrics = {
        METRICS["requests"].label: f"{result.requests} in {result.seconds} s ({result.rps}/s)"
        + _early_end(result),
        METRICS["successes"].label: _successes(result),
        METRICS["goodput"].label: _goodput(single_run),
        METRICS["failed_ratio"].label: _failed(result),
        "response time": _times(p50=result.p50_ms, p95=result.p95_ms, p99=result.p99_ms)
        + _precision(result),
        **_generators(result),
        METRICS["dropped_iterations"].label: str(result.dropped_iterations),
        "in Prometheus": _completeness(result.recorded),
        "limited by": result.limited_by.short + _cpu_at_break(result.break_point),
        **_first_exceeded(result),
        **_cache(result),
        **_cpu_per_request(result),
        **_not_counted(result),
        **({"restarted": ", ".join(result.restarted)} if result.restarted else {}),
        "machine": f"{host['cpus']} CPUs; {pinned}{' (shared!)' if host['shared_cpus'] else ''}"
        + _steal(result.steal),
    }
    return (
        metrics
        | _staleness(result.staleness)
        | _websockets(result.websockets)
        | single_run.files
        | _what_explains(result)
    )


def _what_explains(result: Result) -> dict[str, str]:
    is_named = result.broke_at and result.by_operation
    profile = f", lab profile --after {result.testid}" if is_named else ""
    return {"TESTID": result.testid, "explain it": f"lab explain {result.testid}{profile}"}


def _precision(result: Result) -> str:
    return " (each within 10 %)" if result.percentiles_from == "histograms" else ""


def _generators(result: Result) -> dict[str, str]:
    """Return the requests, CPU and start of each of several generators."""
    if not result.generators:
        return {}
    requests = " + ".join(
        "?" if one.requests is None else str(one.requests) for one in result.generators
    )
    cores = " + ".join("?" if one.cpu is None else f"{one.cpu:.2f}" for one in result.generators)
    starts = [one.started_after for one in result.generators if one.started_after is not None]
    skew = f"started within {max(starts, default=0) * 1000:.0f} ms"
    return {"generators": f"{requests} requests, {cores} CPUs; {skew}"}


def _first_exceeded(result: Result) -> dict[str, str]:
    """Say which of several operations exceeded a limit first."""
    rivals = first_exceeded(result.by_operation)
    if not rivals or len(result.by_operation) == 1:
        return {}
    first = rivals[0]
    p95 = "no p95" if first.p95_ms is None else f"p95 {first.p95_ms:.0f} ms"
    among = f"; the slowest of {len(rivals)} within {WINDOW_SECONDS} s" if len(rivals) > 1 else ""
    return {
        "first over a limit": f"{escape(first.name)}, after {first.exceeded_after:.0f} s ({p95}; "
        f"{first.failed} of {first.requests} failed){among}"
    }


def _cache(result: Result) -> dict[str, str]:
    """Say what the cache did not store, and which operations answered otherwise before the load."""
    reasons = [f"{name} {reason}" for name, reason in result.not_cached.items()]
    changed = [
        f"{each.name}: {count} of {each.requests} {what}"
        for each in result.by_operation
        for count, what in (
            (each.unstorable, "must not be stored, unlike the one before the load"),
            (each.storable, "could be stored, unlike the one before the load"),
        )
        if count
    ]
    lines = {"not cached": reasons, "answers changed": changed}
    return {label: escape("; ".join(texts)) for label, texts in lines.items() if texts}


def _cpu_per_request(result: Result) -> dict[str, str]:
    costs = sorted(result.cpu_ms_per_request.items(), key=lambda item: -item[1])[:_SHOWN_COSTS]
    shown = ", ".join(f"{escape(name)} {cost:.1f} ms" for name, cost in costs)
    return {"CPU per request": shown} if shown else {}


def _not_counted(result: Result) -> dict[str, str]:
    return (
        {"not counted": escape("; ".join(result.unseen_services))} if result.unseen_services else {}
    )


def _goodput(single_run: SingleRun) -> str:
    result, limit = single_run.result, f"within {single_run.bounds.p95_ms:.0f} ms"
    if not result.goodput:
        return f"none: no request succeeded {limit}"
    return f"at best {result.goodput}/s, on average {result.goodput_mean}/s, {limit}"


def _successes(result: Result) -> str:
    if result.max_rps is None:
        return str(result.successes)
    return f"{result.successes}, {result.max_rps}/s in the best 5 s"


def _failed(result: Result) -> str:
    parts = [str(result.failed)]
    if result.refused:
        parts.append(f"{result.refused} more refused, since their page could not be built in time")
    if result.retries:
        parts.append(f"{result.retries} of them sent again")
    if result.unfinished is not None:
        parts.append(f"{result.unfinished} unfinished at stop")
    return "; ".join(parts)


def _websockets(sockets: WebSockets | None) -> dict[str, str]:
    if sockets is None:
        return {}
    messages = (
        f"{sockets.connections} held, {sockets.closed} closed early; of {sockets.expected} "
        f"messages due {sockets.lost} lost, {sockets.doubled} came twice"
    )
    delays = _times(p50=sockets.delay_p50_ms, p95=sockets.delay_p95_ms, most=sockets.delay_max_ms)
    return {"WebSockets": messages, "commit to message": delays}


def _times(**times: float | None) -> str:
    """Format the times with their names; None means that no request ended."""
    values = [f"{name} {value} ms" for name, value in times.items() if value is not None]
    return ", ".join(values) or "no request ended"


def _staleness(staleness: Staleness | None) -> dict[str, str]:
    if staleness is None:
        return {}
    visible = (
        f"{staleness.seen} bookings seen after p50 {staleness.p50_ms:.0f} ms, "
        f"p95 {staleness.p95_ms:.0f} ms, at most {staleness.max_ms:.0f} ms"
    )
    return {"staleness": f"{visible}; {staleness.unseen} not seen in time"}


def _completeness(completeness: Completeness | None) -> str:
    if completeness is None:
        return "not known"
    return (
        f"all {completeness.k6} requests, setup's included"
        if completeness.complete
        else f"NOT ALL: {completeness.text}"
    )


def _steal(share: float) -> str:
    return (
        f"; noisy: the hypervisor took {share:.0%} of the CPU time" if share >= NOISY_SHARE else ""
    )


def _cpu_at_break(point: BreakPoint | None) -> str:
    if point is None or point.target_cpu is None or point.generator_cpu is None:
        return ""
    return f" (target CPUs {point.target_cpu:.0%} busy, generator CPUs {point.generator_cpu:.0%})"
