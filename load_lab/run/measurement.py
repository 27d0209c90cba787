"""Build the result of a k6 run."""

import math
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from statistics import fmean

from load_lab.diagnosis.diagnosis import diagnose, limit_with
from load_lab.diagnosis.facts import Facts
from load_lab.diagnosis.reading import facts_of
from load_lab.errors import LabError
from load_lab.load.generators import samples_file
from load_lab.load.k6 import Run
from load_lab.load.kubernetes.cluster_load import pod_cpus
from load_lab.load.kubernetes.manifests import NAMESPACE, resource_name
from load_lab.load.summary import Summary, read_summary
from load_lab.machine.cpu_use import CpuUse, memory_peak
from load_lab.machine.noise import mean_share
from load_lab.metrics import queries
from load_lab.metrics.counters import PUSH_SECONDS, Counter, HistogramCounter, quantile
from load_lab.metrics.prometheus import Prometheus, PrometheusUnavailable, SampleSource
from load_lab.metrics.push import (
    VERDICT,
    VERDICT_GENERATOR_CPU,
    VERDICT_GOODPUT,
    VERDICT_PERCENTILES,
    push_verdict,
)
from load_lab.metrics.samples import percentiles, read_samples
from load_lab.metrics.windows import WINDOW_SECONDS, Bounds, Totals, Window, windows
from load_lab.results.breakpoint import MIN_SECONDS, find_break
from load_lab.results.completeness import Completeness, LoadSpan, measure_completeness
from load_lab.results.failures import error_start, failure_results
from load_lab.results.operations import operation_results
from load_lab.results.result import (
    ErrorStart,
    FailureResult,
    GeneratorResult,
    OperationResult,
    PercentileSource,
    PrometheusRange,
    Result,
    Staleness,
    TargetName,
    WebSockets,
)
from load_lab.results.verdict import interrupted_verdict, verdict_of, with_limit
from load_lab.stack.engine import Engine

# Completeness is polled; with this timeout, a hanging Prometheus does not block a poll for long.
_POLL_TIMEOUT_SECONDS = 3
_NOT_CLEAR = "cause not clear"


def read_result(
    engine: Engine, run: Run, bounds: Bounds, *, accept_changes: bool = False
) -> Result:
    """Return the result of a run that has ended; with `accept_changes` also if settings of the
    stack were changed during it, which the verdict then says.

    Raises:
        LabError: the stack changed during the run, or k6 sent nothing.
    """
    changes = run.setting_changes
    if engine.settings() is None or (changes and not accept_changes):
        what = ", ".join(f"{each.name}={each.after}" for each in changes)
        cause = f"Settings were changed ({what})" if changes else "The stack was stopped"
        raise LabError(
            f"{cause} during the run, so its result is not valid. k6's summary is in {run.folder}."
        )
    summary = read_summary(run.summary_file)
    if run.stopped_at is not None:
        summary = summary.until(run.stopped_at)
    data = _collect(run, summary, Prometheus(run.settings.prometheus_url), bounds)
    metrics = metrics_of(run, summary, data)
    if run.interrupted:
        return metrics.model_copy(update=vars(interrupted_verdict(metrics)))
    verdict = verdict_of(metrics, summary.plan, bounds, thresholds_failed=run.thresholds_failed)
    result = metrics.model_copy(update=vars(verdict))
    result = with_bottleneck(result, facts_of(result, run.settings, bounds, run.rejections))
    _push_verdict(run.settings.push_url, result)
    if not changes:
        return result
    text = f"{result.verdict}; setting changed during the load: {', '.join(result.setting_changes)}"
    return result.model_copy(update={"verdict": text})


def _push_verdict(url: str, result: Result) -> None:
    found, point, load = result.bottleneck, result.break_point, result.prometheus
    if load is None:
        return
    after = point.seconds_into_test if point else result.seconds
    labels = {"testid": result.testid, "outcome": result.outcome}
    if point:
        labels["cause"] = found.cause if found and found.cause else _NOT_CLEAR
    values = {
        VERDICT: point.rate if point else 0.0,
        VERDICT_GOODPUT: result.goodput,
        VERDICT_GENERATOR_CPU: point.generator_cpu if point else None,
    }
    percentiles = zip(
        VERDICT_PERCENTILES.values(), (result.p50_ms, result.p95_ms, result.p99_ms), strict=True
    )
    values |= {name: None if ms is None else ms / 1000 for name, ms in percentiles}
    push_verdict(url, labels, load.start + after, values)


def with_bottleneck(result: Result, facts: Facts | None) -> Result:
    """Return the result with its diagnosis, which also decides whether other programs, or nothing,
    were the limit.
    """
    if facts is None:
        return result
    found = diagnose(facts)
    limited = with_limit(result, limit_with(found, result.limited_by))
    return limited.model_copy(update={"bottleneck": found})


def check_target_survived(run: Run) -> None:
    """Check that the target still answers: a crash is not a break under load.

    Raises:
        LabError: it went down.
    """
    try:
        run.target.require_alive()
    except LabError as error:
        raise LabError(f"{error} What was measured is in {run.folder}.") from None


@dataclass(frozen=True)
class Percentiles:
    """Percentiles of the response time in ms, and what they were computed from."""

    source: PercentileSource
    values: dict[int, float]


@dataclass(frozen=True)
class RunData:
    """A run's data in Prometheus, and its windows; `started` is Unix time.

    `windows` is empty when the profile has no plan; where Prometheus lacks a part of the run, they
    end before it.
    `max_rps` is the highest rate of successful responses in any window; None for an incomplete
    record, and for a load shorter than a window.
    """

    started: float
    completeness: Completeness
    windows: list[Window]
    max_rps: float | None = None
    percentiles: Percentiles | None = None
    operations: list[OperationResult] = field(default_factory=list)
    # Of generators on a cluster, by name: the cores of each one's pod, at most in any minute.
    pod_cores: dict[str, float] = field(default_factory=dict)
    # Requests by status; 0: no response.
    statuses: dict[str, int] = field(default_factory=dict)
    failures: list[FailureResult] = field(default_factory=list)
    errors_began: ErrorStart | None = None


def _collect(run: Run, summary: Summary, prometheus: Prometheus, bounds: Bounds) -> RunData:
    """Read the run's counters from Prometheus; for an open-model profile with its windows.

    Raises:
        LabError: k6 sent nothing, or the load was too short.
    """
    started = _start_of_load(run, summary)
    completeness = _completeness(run, summary, started)
    if not completeness.readable_until:
        return RunData(started, completeness, [])
    testid, ended = run.load.testid, run.ended + 2 * PUSH_SECONDS
    runs = queries.one_run(testid)
    try:
        totals = read_totals(testid, started, summary.seconds, prometheus)
        operations = operation_results(testid, started, summary.seconds, bounds, prometheus)
        cores = _pod_cores(run, summary, prometheus)
        by_status = queries.requests(queries.load(runs), "status")
        counts = prometheus.instant_by_label(by_status, "status", ended)
        failed = prometheus.samples(queries.failed_requests(runs), started, ended)
        redirects = prometheus.samples(queries.redirects(runs), started, ended)
        load_windows = windows(summary.plan, totals.at, bounds) if summary.plan else []
        load_windows = [w for w in load_windows if w.end <= completeness.readable_until]
        point, began = find_break(load_windows), None
        if point:
            since = started + point.seconds_into_test - WINDOW_SECONDS - PUSH_SECONDS
            span = (started, since, ended)
            began = error_start(testid, failed, operations, *span, prometheus)
    except PrometheusUnavailable:
        return RunData(started, replace(completeness, prometheus=None), [])
    return RunData(
        started,
        completeness,
        load_windows,
        totals.max_rps(summary.seconds) if completeness.readable else None,
        _percentiles(run, summary, totals),
        operations,
        cores,
        {status: round(count) for status, count in sorted(counts.items())},
        failure_results(failed, redirects, summary.plan, started),
        began,
    )


def _pod_cores(run: Run, summary: Summary, prometheus: Prometheus) -> dict[str, float]:
    """Return the cores of each generator's pod; nothing without the kubelet's metrics."""
    if run.load.cluster is None:
        return {}
    load = resource_name(run.load.testid)
    query = queries.cores_of_pods(NAMESPACE, load, math.ceil(summary.seconds))
    by_pod = prometheus.instant_by_label(query, "pod", run.ended)
    return {pod.removeprefix(f"{load}-").split("-")[0]: cores for pod, cores in by_pod.items()}


_SHARES = (50, 90, 95, 99)


def _percentiles(run: Run, summary: Summary, totals: Totals) -> Percentiles | None:
    """Return the percentiles in ms; None where k6's summary has them."""
    if run.load.samples:
        names = run.load.names
        files = [samples_file(run.folder, name) for name in names]
        durations = read_samples(files, summary.scenario)
        return Percentiles("samples", percentiles(durations, _SHARES))
    if not summary.generators:
        return None
    histogram = totals.durations.total()
    values = {share: quantile(histogram, share / 100) for share in _SHARES}
    return Percentiles(
        "histograms", {share: value * 1000 for share, value in values.items() if value is not None}
    )


def _start_of_load(run: Run, summary: Summary) -> float:
    if summary.started is None:
        raise LabError(f"k6 sent nothing: {run.load.profile} has no arrival in its duration.")
    cut_off = run.interrupted or run.lost or run.page_change
    if summary.plan and summary.plan.seconds < MIN_SECONDS and not cut_off:
        raise LabError(
            f"The load lasted {summary.plan.seconds:.0f} s: too short to judge. Its counts are in "
            f"{run.summary_file}. Give it --duration {MIN_SECONDS}s or more."
        )
    return summary.started


def _completeness(run: Run, summary: Summary, started: float) -> Completeness:
    prometheus = Prometheus(run.settings.prometheus_url, _POLL_TIMEOUT_SECONDS)
    load = LoadSpan(
        run.load.testid,
        started,
        summary.seconds,
        summary.all_requests,
        summary.generators,
        run.lost,
    )
    completeness = measure_completeness(load, prometheus)
    return replace(completeness, clock_jump=run.clock_jump)


def read_totals(testid: str, started: float, seconds: float, source: SampleSource) -> Totals:
    """Return the counters of a load's first `seconds` from Prometheus."""
    ended = started + seconds + 1
    # Starts one push interval earlier: k6 may have pushed zeros in that second.
    counters = {
        name: Counter(source.samples(selector, started - PUSH_SECONDS, ended).values(), started)
        for name, selector in queries.counters(queries.one_run(testid)).items()
    }
    return Totals(started, **counters, durations=read_durations(testid, started, ended, source))


def read_durations(
    testid: str, started: float, ended: float, source: SampleSource
) -> HistogramCounter:
    """Return the response times of a load from Prometheus. A mix of hundreds of operations has
    histograms of its own for it.
    """
    runs = queries.one_run(testid)
    for selector in (queries.durations_of_mix(runs), queries.durations(runs)):
        if series := source.histograms(selector, started - PUSH_SECONDS, ended):
            break
    return HistogramCounter(series.values(), started)


def metrics_of(run: Run, summary: Summary, data: RunData) -> Result:
    """Return every metric of a run, without a verdict."""
    requests = summary.requests
    cache = _nginx_answers(summary)
    refused = cache.get("nginx", {}).get("REFUSED", 0)
    failed = summary.failed - refused
    in_time = summary.value("lab_answers_in_time", "count") / summary.seconds
    goodput = max((window.goodput for window in data.windows), default=in_time)
    planned, completeness = summary.planned_seconds, data.completeness
    stopped = run.stopped_at

    def of_share(share: int) -> float | None:
        if data.percentiles is None:
            return summary.milliseconds("http_req_duration", f"p({share})")
        value = data.percentiles.values.get(share)
        return None if value is None else round(value, 1)

    return Result(
        testid=run.load.testid,
        profile=run.load.profile,
        scenario=summary.scenario,
        route=run.load.route,
        only=run.load.only,
        started=datetime.fromtimestamp(run.started, UTC).isoformat(timespec="seconds"),
        seconds=round(summary.seconds, 1),
        stopped_after=None if stopped is None else round(stopped - data.started, 1),
        requests=requests,
        successes=summary.good,
        failed=failed,
        refused=refused,
        retries=int(summary.value("lab_retries", "count")),
        unfinished=_unfinished(summary),
        rps=round(requests / summary.seconds, 2),
        answers_per_second=round(summary.good / planned, 2) if planned else None,
        goodput=round(goodput, 2),
        goodput_mean=round(in_time, 2),
        max_rps=None if data.max_rps is None else round(data.max_rps, 2),
        p50_ms=of_share(50),
        p90_ms=of_share(90),
        p95_ms=of_share(95),
        p99_ms=of_share(99),
        dropped_iterations=int(summary.value("dropped_iterations", "count")),
        recorded=completeness,
        staleness=_staleness(summary),
        websockets=_websockets(summary),
        steal=mean_share(use.steal for use in run.cpu),
        cpu_speed=run.cpu_speed,
        target_cpus=run.target_cpus,
        wake_ms=run.wake_ms,
        unit=summary.plan.unit if summary.plan else None,
        failed_ratio=round(failed / max(requests, 1), 4),
        missing_in_prometheus=completeness.k6 - (completeness.prometheus or 0),
        cache=cache,
        not_cached=dict(run.target.uncached),
        services_cpu=_mean_cores(run.cpu),
        cpu_ms_per_request=_cpu_per_request(run.cpu, requests),
        target=TargetName(
            name=run.target.name, url=run.target.url, observed=run.target.is_observed
        ),
        restarted=list(run.restarted),
        by_operation=data.operations,
        generators=_generators(run, summary, data),
        percentiles_from=data.percentiles.source if data.percentiles else "summary",
        memory_peak_bytes=memory_peak(run.cpu),
        prometheus=PrometheusRange(
            start=data.started,
            end=run.ended,
            queries=queries.queries(run.load.testid, f"{WINDOW_SECONDS}s"),
        ),
        windows=data.windows,
        cpu=run.cpu,
        signals=run.signals,
        unseen_signals=list(run.unseen),
        unseen_services=list(run.unseen_services),
        statuses=data.statuses,
        failures=data.failures,
        errors_began=data.errors_began,
        rejections=run.rejections,
        logged_errors=run.logged,
        setting_changes=[
            f"{each.name} from {each.before} to {each.after} after {each.at - data.started:.0f} s"
            for each in run.setting_changes
        ],
        page_change=run.page_change,
    )


def _generators(run: Run, summary: Summary, data: RunData) -> list[GeneratorResult]:
    """Return what each of several generators did; nothing for a single one."""
    return [
        GeneratorResult(
            name=part.name,
            requests=part.requests,
            started_after=None if part.started is None else round(part.started - data.started, 3),
            cpu=data.pod_cores.get(part.name, _generator_cores(run.cpu, part.name)),
            cpu_limit=pod_cpus() if run.load.cluster else None,
        )
        for part in summary.generators
    ]


def _generator_cores(cpu: list[CpuUse], name: str) -> float | None:
    used = [use.generators[name] for use in cpu if name in use.generators]
    return round(fmean(used), 3) if used else None


def _unfinished(summary: Summary) -> int | None:
    """Return the requests in flight at the end of the load; None where k6 waits for all of them.

    k6 does not count a request that it cuts off, so this is begun minus ended requests. A retry
    belongs to the request that it repeats.
    """
    if not summary.has("lab_begun"):
        return None
    ended = summary.requests - summary.value("lab_retries", "count")
    return int(summary.value("lab_begun", "count") - ended)


def _staleness(summary: Summary) -> Staleness | None:
    if not summary.has("lab_staleness_unseen"):
        return None
    return Staleness(
        seen=round(summary.value("lab_staleness", "count")),
        p50_ms=round(summary.value("lab_staleness", "p(50)")),
        p95_ms=round(summary.value("lab_staleness", "p(95)")),
        max_ms=round(summary.value("lab_staleness", "max")),
        unseen=int(summary.value("lab_staleness_unseen", "count")),
    )


def _websockets(summary: Summary) -> WebSockets | None:
    if not summary.has("lab_ws_lost"):
        return None
    counts = ("messages", "expected", "lost", "doubled", "closed")
    return WebSockets(
        connections=int(summary.value("lab_ws_connections", "max")),
        **{name: int(summary.value(f"lab_ws_{name}", "count")) for name in counts},
        delay_p50_ms=summary.milliseconds("lab_ws_delay", "p(50)"),
        delay_p95_ms=summary.milliseconds("lab_ws_delay", "p(95)"),
        delay_max_ms=summary.milliseconds("lab_ws_delay", "max"),
    )


def _nginx_answers(summary: Summary) -> dict[str, dict[str, int]]:
    """Return response counts by X-Cache-Status, from k6; empty when no response had the header."""
    counts = summary.counts_by_tag("lab_cache_status", "cache_status")
    return {"nginx": counts} if set(counts) - {"NONE"} else {}


def _mean_cores(cpu: list[CpuUse]) -> dict[str, float]:
    return {
        name: round(fmean(use.services.get(name, 0.0) for use in cpu), 3)
        for name in sorted({name for use in cpu for name in use.services})
    }


def _cpu_per_request(cpu: list[CpuUse], requests: int) -> dict[str, float]:
    """Return the CPU time of each service in ms per request; a sample is for one second."""
    if not requests:
        return {}
    seconds = {name: cores * len(cpu) for name, cores in _mean_cores(cpu).items()}
    return {name: round(used * 1000 / requests, 3) for name, used in seconds.items()}
