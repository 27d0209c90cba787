"""Load at twice the capacity for some time: with load shedding and without, where the lab knows how
to turn that on, else of the target as it is.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any

from load_lab.capacity import target_capacity as capacity
from load_lab.capacity.target_capacity import TargetCapacity, find_target_capacity
from load_lab.console import Progress
from load_lab.errors import LabError
from load_lab.load.load import Load, new_testid
from load_lab.load.page_change import require_same_pages
from load_lab.machine.cpu_use import CpuUse
from load_lab.machine.observation import Signals
from load_lab.metrics import queries
from load_lab.metrics.counters import PUSH_SECONDS
from load_lab.metrics.plan import Plan, Stage
from load_lab.metrics.prometheus import Prometheus
from load_lab.metrics.windows import WINDOW_SECONDS, Bounds, Window
from load_lab.results.limit import Limit
from load_lab.results.provenance import facts, store_result
from load_lab.run.single_run import plan_and_start, run_once
from load_lab.soak.limits import LimitCheck, at_least, at_most, memory_checks, peaks
from load_lab.targets.subject import AS_IS, Subject, Variant

FACTOR = 2
# Limits: goodput ÷ capacity; p95 of accepted requests; recovery time.
MIN_GOODPUT_SHARE, MAX_P95_MS, MAX_RECOVERY_SECONDS = 0.9, 2000, 10
# Limits on shares of the overload's requests: dropped by k6, and answered well. Above them there
# was no overload.
SUCCESS_LABEL = "share of the overload that was answered well"
MAX_UNSENT_SHARE, MAX_SUCCESS_SHARE = 0.05, 0.9
RECOVERY_LABEL = "seconds until no limit is exceeded"
# A request that arrives just before the end of an overload is due one p95 limit and one push later
# (load_lab/metrics/windows.py): no window that starts earlier can be good.
MIN_RECOVERY_SECONDS = Bounds().p95_ms / 1000 + PUSH_SECONDS
SECONDS = 20
# The same without shedding, in overloads: a queue of all that is too much takes two to work off,
# since half of the capacity is free then; four if the capacity is a fifth lower than the search
# found. A window after that is looked at, too.
MAX_RECOVERY_FACTOR, _LAST_SECONDS = 4, 10
# One virtual user waits for each request: half of the overload, and more for the same reason.
_USERS_SHARE, _MOST_USERS = 0.75, 5000
# Time for the calm stages before and after it (k6/lib/profiles.js), settings, and last responses.
_AROUND_SECONDS = 60


@dataclass(frozen=True)
class Arm:
    """One overload. Rates are per second, in the stage with too many arrivals.

    `unsent_share` of it found no free virtual user. `slowest_ms` is the p95 of the slowest window.
    `seconds_to_normal` is the time from its end to the first moment from which no limit is
    exceeded; None if there is none in the `calm_seconds` after it, and never less than
    MIN_RECOVERY_SECONDS. `waiting` requests were in the server or its backlog when it ended,
    `most_waiting` at most; None where that is not visible. `requests`, `dropped` and `statuses`
    (requests by status, 0: no response) are of the whole run. `restarted`: services whose main
    process ended. `memory_bytes` is the most of each service, `server_memory` that of the server
    before, at most and at the end. `cpu_speed`: see load_lab/machine/noise.py.
    """

    name: str
    rate: int
    goodput: float
    goodput_share: float
    unsent_share: float
    accepted_p95_ms: float | None
    slowest_ms: float | None
    seconds_to_normal: float | None
    calm_seconds: float
    waiting: float | None
    most_waiting: float | None
    requests: int
    dropped: int
    statuses: dict[str, int]
    restarted: list[str]
    limited_by: Limit
    cpu_speed: float | None
    memory_bytes: dict[str, int]
    server_memory: dict[str, int]
    testid: str
    spike: tuple[float, float]
    windows: list[Window]


def run(subject: Subject, seconds: int = SECONDS) -> dict[str, Any]:
    """Find the capacity, overload the target, and return the document. One that can shed load is
    overloaded with shedding and without; its capacity is that without.

    Raises:
        LabError: the target failed, or has no capacity that k6 can reach.
        Interrupted: the user pressed Ctrl-C.
    """
    variants = subject.shedding or (AS_IS,)
    expected = seconds + _AROUND_SECONDS
    expected += 0 if subject.shedding else MAX_RECOVERY_FACTOR * seconds
    with (
        subject.used(),
        Progress(capacity.SECONDS + len(variants) * expected) as progress,
        facts(subject.engine, subject.settings, subject.facts()) as provenance,
    ):
        progress.begin("capacity", capacity.SECONDS)
        limit = _limit(subject, variants[-1], progress)
        arms = []
        for variant in variants:
            progress.begin(
                f"overload, {variant.name}" if subject.shedding else "overload", expected
            )
            arms.append(_arm(subject, variant, limit, seconds))
        settings = subject.settings.model_dump()
    document = {
        **provenance,
        "target": subject.name,
        "scenario": subject.scenario or arms[0].name,
        "settings": settings,
        "limit": asdict(limit),
        "arms": [asdict(arm) for arm in arms],
        "figures": [each.document() for each in _checks(subject, arms[0])],
    }
    # Altair takes half a second to import, which would delay every other command.
    from load_lab.overload.chart import draw

    return store_result("overload", document, draw)


def _limit(subject: Subject, variant: Variant, progress: Progress) -> TargetCapacity:
    """Return the capacity.

    Raises:
        LabError: it is not known.
    """
    with subject.running(variant) as running:
        # Else the stack's exporters know the memory.
        if not subject.memory_limits:
            running.require_visible("its queue and its memory")
        limit = find_target_capacity(running, subject.scenario, progress.show_step)
    if limit.outcome == "generator":
        raise LabError(
            f"The capacity for {subject.scenario or subject.name} is not known: {limit.headline}. "
            "The generator must be the stronger side: give it more CPUs (LAB_LOAD_CPUS), the "
            "target fewer (LAB_TARGET_CPUS), or load what costs the target more."
        )
    return limit


def _load(subject: Subject, rate: int, seconds: int) -> Load:
    load = Load("spike", subject.scenario, rate=rate, duration=f"{seconds}s")
    load = replace(load, testid=new_testid("overload"))
    if subject.shedding:
        return load
    users = min(round(_USERS_SHARE * rate * seconds), _MOST_USERS)
    calm = f"{MAX_RECOVERY_FACTOR * seconds + _LAST_SECONDS}s"
    return replace(load, max_vus=users, pre_allocated_vus=users, calm=calm)


def _arm(subject: Subject, variant: Variant, limit: TargetCapacity, seconds: int) -> Arm:
    rate = round(FACTOR * limit.rate)
    with subject.running(variant) as running:
        load = _load(subject, rate, seconds)
        run = run_once(running.engine, running.target, load, Bounds())
        prometheus = Prometheus(running.settings.prometheus_url)
        plan, started = plan_and_start(run)
        memory = peaks(prometheus, subject.memory_limits, started, started + plan.seconds)
    result = run.result
    require_same_pages(result.testid, result.page_change)
    if not result.windows:
        raise LabError(f"{result.testid} can't be judged: {result.verdict}")
    spike = spike_of(plan)
    goodput, dropped, offered = (
        mean_in(result.windows, spike, name) for name in ("goodput", "dropped", "offered")
    )
    times = [w.p95_ms for w in result.windows if w.p95_ms is not None and w.end > spike[0]]
    begin, end = (started + moment for moment in spike)
    in_overload = waiting_requests(result.signals, begin, end)
    until_the_end = waiting_requests(result.signals, begin, started + plan.seconds)
    return Arm(
        name=variant.name if subject.shedding else running.target.description,
        rate=rate,
        goodput=round(goodput, 1),
        goodput_share=round(goodput / limit.rate, 3),
        unsent_share=round(dropped / offered, 3) if offered else 1.0,
        accepted_p95_ms=_accepted_p95(prometheus, result.testid, started, spike),
        slowest_ms=max(times, default=None),
        seconds_to_normal=seconds_to_normal(result.windows, spike),
        calm_seconds=plan.seconds - spike[1],
        waiting=in_overload[-1] if in_overload else None,
        most_waiting=max(until_the_end, default=None),
        requests=result.requests,
        dropped=result.dropped_iterations,
        statuses=result.statuses,
        restarted=result.restarted,
        limited_by=result.limited_by,
        cpu_speed=result.cpu_speed,
        memory_bytes=memory,
        server_memory=_server_memory(result.cpu, begin),
        testid=result.testid,
        spike=spike,
        windows=result.windows,
    )


def spike_of(plan: Plan) -> tuple[float, float]:
    """Return start and end of the highest rate, in seconds of the plan."""
    start = 0.0
    for stage in plan.stages:
        if stage == Stage(stage.seconds, plan.top_rate, plan.top_rate):
            return start, start + stage.seconds
        start += stage.seconds
    raise LabError(f"A load without a stretch at its highest rate is no overload: {plan}.")


def mean_in(windows: list[Window], spike: tuple[float, float], name: str) -> float:
    """Return the mean of a metric over the windows within the spike."""
    start, end = spike
    values = [getattr(w, name) for w in windows if w.end - WINDOW_SECONDS >= start <= w.end <= end]
    return fmean(values) if values else 0.0


def seconds_to_normal(windows: list[Window], spike: tuple[float, float]) -> float | None:
    """Return the seconds from the spike's end to the first window after which no limit is exceeded.

    The spike's last requests are due in the first MIN_RECOVERY_SECONDS after it, and are
    missing there however soon the target recovers.
    """
    after = [w for w in windows if w.end - WINDOW_SECONDS >= spike[1]]
    violation_ends = [w.end for w in after if w.broken]
    normal_ends = [w.end for w in after if w.end > max(violation_ends, default=0.0)]
    return float(min(normal_ends) - WINDOW_SECONDS - spike[1]) if normal_ends else None


def _accepted_p95(
    prometheus: Prometheus, testid: str, started: float, spike: tuple[float, float]
) -> float | None:
    """Return the p95 in ms, accurate to one bucket, of successful responses in the spike."""
    seconds = spike[1] - spike[0]
    query = queries.percentile_of_successes(queries.one_run(testid), 0.95, f"{seconds:.0f}s")
    end = started + spike[1] + PUSH_SECONDS
    p95 = prometheus.instant(query, end)
    return None if p95 is None else round(1000 * p95, 1)


def waiting_requests(signals: Sequence[Signals], begin: float, end: float) -> list[float]:
    """Return the requests in the server or its backlog, in each second between two Unix times in
    which they were visible.
    """
    return [
        one.in_flight + one.queued
        for one in signals
        if begin < one.at <= end and one.in_flight is not None and one.queued is not None
    ]


def _server_memory(cpu: Sequence[CpuUse], begin: float) -> dict[str, int]:
    """Return the server's memory before the overload, at most and at the end, if it is readable."""
    sizes = [(use.at, use.memory_bytes) for use in cpu if use.memory_bytes is not None]
    if not sizes:
        return {}
    before = [size for at, size in sizes if at <= begin] or [sizes[0][1]]
    most = max(size for _, size in sizes)
    return {"before": before[-1], "at most": most, "at the end": sizes[-1][1]}


def _checks(subject: Subject, arm: Arm) -> list[LimitCheck]:
    if not subject.shedding:
        return recovery_checks(arm)
    return [*shedding_checks(arm), *memory_checks(subject.memory_limits, arm.memory_bytes)]


def shedding_checks(shedding: Arm) -> list[LimitCheck]:
    """Return the values of an overload with load shedding, with their limits."""
    unexpected = shedding.requests - sum(
        shedding.statuses.get(status, 0) for status in _EXPECTED_STATUSES
    )
    return [
        at_most(
            "share of the overload that k6 could not send", MAX_UNSENT_SHARE, shedding.unsent_share
        ),
        _success_check(shedding),
        at_least("goodput ÷ capacity", MIN_GOODPUT_SHARE, shedding.goodput_share),
        at_most("p95 of accepted requests, ms", MAX_P95_MS, shedding.accepted_p95_ms),
        at_most(RECOVERY_LABEL, MAX_RECOVERY_SECONDS, shedding.seconds_to_normal),
        at_most("answers other than success, 429 or 503", 0, unexpected),
    ]


_EXPECTED_STATUSES = ("200", "201", "304", "429", "503")


def recovery_checks(arm: Arm) -> list[LimitCheck]:
    """Return what any target has to do with more load than it sustains: to get over it."""
    return [
        _success_check(arm),
        at_most(
            RECOVERY_LABEL,
            MAX_RECOVERY_FACTOR * (arm.spike[1] - arm.spike[0]),
            arm.seconds_to_normal,
        ),
        at_most("services whose main process ended", 0, len(arm.restarted)),
    ]


def _success_check(arm: Arm) -> LimitCheck:
    return at_most(SUCCESS_LABEL, MAX_SUCCESS_SHARE, success_share(arm.goodput, arm.rate))


def success_share(goodput: float, rate: float) -> float:
    """Return the share of an overload that was answered well."""
    return round(goodput / rate, 3)
