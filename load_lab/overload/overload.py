"""Load at twice the capacity for some time, with LAB_SHED and without."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from load_lab.capacity import stack_capacity as capacity
from load_lab.capacity.stack_capacity import StackCapacity, find_stack_capacity
from load_lab.console import Progress
from load_lab.errors import LabError
from load_lab.load.k6 import check
from load_lab.load.load import Load, new_testid
from load_lab.metrics import queries
from load_lab.metrics.counters import PUSH_SECONDS
from load_lab.metrics.plan import Plan, Stage
from load_lab.metrics.prometheus import Prometheus
from load_lab.metrics.windows import WINDOW_SECONDS, Bounds, Window
from load_lab.results.limit import Limit
from load_lab.results.provenance import facts, store_result
from load_lab.run.single_run import SingleRun, plan_and_start, run_once
from load_lab.settings import Settings, update_live_settings
from load_lab.soak.limits import LimitCheck, at_least, at_most, memory_checks, peaks
from load_lab.stack.engine import Engine
from load_lab.stack.exclusive import ExclusiveUse, exclusive_use, prepare
from load_lab.targets.reference.app import ReferenceApp

FACTOR = 2
# Limits: goodput ÷ capacity; p95 of accepted requests; recovery time.
MIN_GOODPUT_SHARE, MAX_P95_MS, MAX_RECOVERY_SECONDS = 0.9, 2000, 10
# Limits on shares of the overload's requests: dropped by k6, and answered well. Above them there
# was no overload.
SUCCESS_LABEL = "share of the overload that was answered well"
MAX_UNSENT_SHARE, MAX_SUCCESS_SHARE = 0.05, 0.9
# A request that arrives just before the end of an overload is due one p95 limit and one push later
# (load_lab/metrics/windows.py): no window that starts earlier can be good.
MIN_RECOVERY_SECONDS = Bounds().p95_ms / 1000 + PUSH_SECONDS
SECONDS = 20
# Time for the calm stages before and after it (k6/lib/profiles.js), settings, and last responses.
_AROUND_SECONDS = 60


@dataclass(frozen=True)
class Arm:
    """One overload. Rates are per second, in the stage with too many arrivals.

    `unsent_share` of it found no free virtual user. `seconds_to_normal` is the time from its end to
    the first moment from which no limit is exceeded; None if there is none, and never less than
    MIN_RECOVERY_SECONDS. `requests`, `dropped` and `statuses` (requests by status, 0: no
    response) are of the whole run. `cpu_speed`: see load_lab/machine/noise.py.
    """

    shed: str
    rate: int
    goodput: float
    goodput_share: float
    unsent_share: float
    accepted_p95_ms: float | None
    seconds_to_normal: float | None
    requests: int
    dropped: int
    statuses: dict[str, int]
    limited_by: Limit
    cpu_speed: float | None
    memory_bytes: dict[str, int]
    testid: str
    spike: tuple[float, float]
    windows: list[Window]


def run(engine: Engine, scenario: str, seconds: int = SECONDS) -> dict[str, Any]:
    """Find the capacity, overload the stack with shedding on and off, and return the document.

    Raises:
        LabError: the stack failed, or has no capacity that k6 can reach.
        Interrupted: the user pressed Ctrl-C.
    """
    with (
        exclusive_use(engine, keep_settings=True) as stack,
        Progress(_estimate_seconds(seconds)) as progress,
    ):
        # Before the data is loaded again, so that a wrong name fails early.
        check(engine, ReferenceApp(engine), _load(scenario, 1, seconds, "on"))
        prepare(engine, stack)
        with facts(engine, stack.base) as provenance:
            progress.begin("capacity", capacity.SECONDS)
            _apply(engine, stack, "off")
            limit = _limit(engine, scenario, progress)
            arms = list(_arms(engine, stack, limit, scenario, seconds, progress))
    document = {
        **provenance,
        "scenario": scenario,
        "settings": stack.base.model_dump(),
        "limit": asdict(limit),
        "arms": [asdict(arm) for arm in arms],
        "figures": [check_result.document() for check_result in limit_checks(arms[0])],
    }
    # Altair takes half a second to import, which would delay every other command.
    from load_lab.overload.chart import draw

    return store_result("overload", document, draw)


def _estimate_seconds(seconds: int) -> float:
    return capacity.SECONDS + 2 * (seconds + _AROUND_SECONDS)


def _limit(engine: Engine, scenario: str, progress: Progress) -> StackCapacity:
    """Return the capacity.

    Raises:
        LabError: it is not known.
    """
    limit = find_stack_capacity(engine, scenario, progress.show_step)
    if limit.outcome == "generator":
        raise LabError(
            f"The capacity for {scenario} is not known: {limit.headline}. The generator must be "
            "the stronger side; try a dearer scenario, or LAB_NGINX_CACHE=off."
        )
    return limit


def _apply(engine: Engine, stack: ExclusiveUse, shed: str) -> Settings:
    """Set shedding on or off, with no waiting requests left in the stack."""
    settings = update_live_settings(stack.base, {"LAB_SHED": shed})
    with engine.empty_caches(settings):
        pass
    return settings


def _arms(
    engine: Engine,
    stack: ExclusiveUse,
    limit: StackCapacity,
    scenario: str,
    seconds: int,
    progress: Progress,
) -> Iterator[Arm]:
    rate = round(FACTOR * limit.rate)
    for shed in ("on", "off"):
        progress.begin(f"overload, LAB_SHED={shed}", seconds + _AROUND_SECONDS)
        settings = _apply(engine, stack, shed)
        run = run_once(engine, ReferenceApp(engine), _load(scenario, rate, seconds, shed), Bounds())
        yield _arm(shed, rate, limit, run, Prometheus(settings.prometheus_url))


def _load(scenario: str, rate: int, seconds: int, shed: str) -> Load:
    testid = new_testid(f"overload-{shed}")
    return Load("spike", scenario, rate=rate, duration=f"{seconds}s", testid=testid)


def _arm(shed: str, rate: int, limit: StackCapacity, run: SingleRun, prometheus: Prometheus) -> Arm:
    result = run.result
    plan, started = plan_and_start(run)
    if not result.windows:
        raise LabError(f"{result.testid} can't be judged: {result.verdict}")
    spike = spike_of(plan)
    goodput, dropped, offered = (
        mean_in(result.windows, spike, name) for name in ("goodput", "dropped", "offered")
    )
    return Arm(
        shed=shed,
        rate=rate,
        goodput=round(goodput, 1),
        goodput_share=round(goodput / limit.rate, 3),
        unsent_share=round(dropped / offered, 3) if offered else 1.0,
        accepted_p95_ms=_accepted_p95(prometheus, result.testid, started, spike),
        seconds_to_normal=seconds_to_normal(result.windows, spike),
        requests=result.requests,
        dropped=result.dropped_iterations,
        statuses=result.statuses,
        limited_by=result.limited_by,
        cpu_speed=result.cpu_speed,
        memory_bytes=peaks(prometheus, started, started + plan.seconds),
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


def limit_checks(shedding: Arm) -> list[LimitCheck]:
    """Return the values of the overload with LAB_SHED=on, with their limits."""
    unexpected = shedding.requests - sum(
        shedding.statuses.get(status, 0) for status in _EXPECTED_STATUSES
    )
    return [
        at_most(
            "share of the overload that k6 could not send", MAX_UNSENT_SHARE, shedding.unsent_share
        ),
        at_most(SUCCESS_LABEL, MAX_SUCCESS_SHARE, round(shedding.goodput / shedding.rate, 3)),
        at_least("goodput ÷ capacity", MIN_GOODPUT_SHARE, shedding.goodput_share),
        at_most("p95 of accepted requests, ms", MAX_P95_MS, shedding.accepted_p95_ms),
        at_most(
            "seconds until no limit is exceeded", MAX_RECOVERY_SECONDS, shedding.seconds_to_normal
        ),
        at_most("answers other than success, 429 or 503", 0, unexpected),
        *memory_checks(shedding.memory_bytes),
    ]


_EXPECTED_STATUSES = ("200", "201", "304", "429", "503")
