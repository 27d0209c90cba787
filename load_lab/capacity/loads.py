"""The loads of a search for a capacity, sent by k6."""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from lab_settings.types import cpu_numbers

from load_lab.capacity.judgement import HoldPlan, Judgement, judge
from load_lab.capacity.outcomes import Alone, Hold, Ramp
from load_lab.capacity.timeline import LATE_SHARE, Second, Slo, timeline_of
from load_lab.diagnosis.diagnosis import diagnose
from load_lab.diagnosis.facts import Facts
from load_lab.diagnosis.period import FULL_CPU, Rates, period_between
from load_lab.diagnosis.reading import TOO_MANY_REQUESTS, limits_of
from load_lab.errors import LabError
from load_lab.load.k6 import Run, run_k6
from load_lab.load.load import Load
from load_lab.load.page_change import require_same_pages
from load_lab.load.summary import read_summary
from load_lab.machine.cpu_use import CpuUse, busy_between, memory_peak
from load_lab.machine.cpus import choose_cpus
from load_lab.metrics import queries
from load_lab.metrics.counters import Histogram, quantile
from load_lab.metrics.plan import Plan
from load_lab.metrics.prometheus import Prometheus, PrometheusUnavailable
from load_lab.metrics.windows import WINDOW_SECONDS, Bounds, Totals
from load_lab.results.bottleneck import Diagnosis
from load_lab.results.limit import Limit
from load_lab.results.operations import operation_results
from load_lab.results.result import OperationResult
from load_lab.results.verdict import limit_of_cpu
from load_lab.run.early_stop import generator_is_full
from load_lab.run.running import RunningLoad
from load_lab.stack.engine import Engine, settings_of
from load_lab.targets.target import Target

_ALONE_SECONDS = 3
# A ramp's rate grows by 7 % a second (k6/lib/profiles.js): to this multiple in a minute.
_RAMP_FACTOR = 60
_LEAST_TOP, _HIGHEST_RATE = 10, 100_000
# The newest pushes are not there yet when a load is looked at.
_UNREAD_SECONDS = 5
# Virtual users of a hold: more than the requests in flight at which it fails.
_USERS_PER_LIMIT, _MORE_USERS, _MOST_USERS = 3, 20, 5000
# A ramp ends when this share of the responses is late, for as many seconds.
_LATE_NOW, _LATE_SECONDS = 0.25, 2
_MIN_LATE, _FEW_IN_FLIGHT = 5, 4
_SATURATED_SECONDS = 3
# The machine stood still between two samples this far apart, in seconds.
_LATE_SAMPLE = 1.6
# Of the CPU time in one second, and cores of other programs over a load.
_MUCH_STEAL, _OTHER_CORES = 0.2, 0.3
# The wait between two loads, and between two looks at the target.
_SHORTEST_DRAIN, _LONGEST_DRAIN, _POLL_SECONDS = 1.0, 60.0, 0.5
_QUICK_ANSWER = 0.05
# In the first seconds of a hold, nothing is full yet.
_FIRST_SEEN = 2
# Their speed is measured over so many seconds at the end of a ramp.
_SPEED_SECONDS = 8

_FULL = Judgement(False, "the load generator was full")
_UNRECORDED = Judgement(False, "k6 or Prometheus stood still")


@dataclass(frozen=True)
class LoadDetails:
    """What a search does not need of a load, but its reader does. Times in ms; `services` has the
    cores of each, `memory_bytes` is the most that the server took, `bottleneck` what limited the
    target where the load failed, `operations` each of them there.
    """

    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    target_cpu: float | None
    generator_cpu: float | None
    services: dict[str, float]
    cpu_speed: float | None
    memory_bytes: int | None
    bottleneck: Diagnosis | None = None
    operations: list[OperationResult] = field(default_factory=list)


@dataclass
class K6Loads:
    """`Loads` of a search on a target; the files of each load go to a folder in `folder`.

    `only` selects operations of a target's mix. `show` gets a line for each load; `details` has
    those of each load, by name.
    """

    engine: Engine
    target: Target
    slo: Slo
    scenario: str | None
    folder: Path
    only: str | None = None
    show: Callable[[str], None] = lambda _step: None
    details: dict[str, LoadDetails] = field(default_factory=dict)
    # Services of the target that are in no CPU time, after the last load.
    not_counted: Sequence[str] = ()

    def __post_init__(self) -> None:
        self._sent, self._cpu_bound = 0, False
        self._alone: float | None = None
        cpus = choose_cpus(settings_of(self.engine))
        self._target_cpus = 0 if cpus.shared else len(cpu_numbers(cpus.target))
        self._ready_seconds = min(self._time_ready() for _ in range(3))

    def now(self) -> float:
        return time.monotonic()

    def alone(self) -> Alone:
        """Send requests one at a time, without a pause."""
        self.show("one request at a time")
        load = replace(self._load("alone", "closed"), vus=1, duration=f"{_ALONE_SECONDS}s")
        run = self._run(load)
        summary = read_summary(run.summary_file)
        if not summary.requests:
            raise LabError(f"The target answered no request. See {run.folder}.")
        self._alone = summary.value("http_req_duration", "avg") / 1000
        late = summary.good - summary.value("lab_answers_in_time", "count")
        median = summary.value("http_req_duration", "p(50)") / 1000
        disturbed = is_disturbed(run.cpu, run.started, foreign=self.target.is_observed)
        return Alone(median, summary.requests, late, summary.failed, disturbed)

    def ramp(self, start: float) -> Ramp:
        """Let the rate grow until responses are late, or the load generator is full."""
        top = min(math.ceil(start * _RAMP_FACTOR), _HIGHEST_RATE)
        load = replace(
            self._load("ramp", "breakpoint-geometric"),
            start_rate=round(max(start, 0.1), 2),
            rate=max(top, _LEAST_TOP),
        )
        self.show(f"a ramp from {start:.3g}/s")
        timeline = self._follow(load, lambda seconds: _is_saturated(seconds, self.slo))
        last = timeline.seconds[-_SATURATED_SECONDS:]
        count = len(timeline.seconds)
        self._cpu_bound = self._is_cpu_bound(timeline)
        return Ramp(
            answered=sum(s.answered - s.failed for s in last) / len(last),
            late_from=_late_from(timeline.seconds, self.slo),
            variation=_variation(timeline.histogram(0, max(count // 2, 1))),
            highest=last[-1].arrived,
            generator_full=timeline.generator_full,
            disturbed=timeline.disturbed,
            speed=self._speed(timeline, max(count - _SPEED_SECONDS, 0))
            if self._cpu_bound
            else None,
        )

    def hold(self, rate: float, plan: HoldPlan) -> Hold:
        """Hold a rate until its judgement is clear."""
        users = math.ceil(_USERS_PER_LIMIT * self.slo.p95_seconds * rate) + _MORE_USERS
        load = replace(
            self._load("hold", "trial"),
            rate=round(rate, 2),
            duration=f"{plan.longest + _UNREAD_SECONDS}s",
            max_vus=min(users, _MOST_USERS),
        )

        def judgement(seconds: list[Second]) -> Judgement | None:
            return judge(rate, seconds, self.slo, plan)

        self.show(f"a hold at {rate:.3g}/s")
        timeline = self._follow(load, lambda seconds: judgement(seconds) is not None)
        result = _FULL if timeline.generator_full else judgement(timeline.seconds)
        if result is None:
            timeline.disturbed, result = True, _UNRECORDED
        if not result.passed:
            found = self.details[load.testid]
            self.details[load.testid] = replace(
                found,
                bottleneck=self._bottleneck(rate, timeline),
                operations=self._operations(timeline),
            )
        return Hold(
            rate,
            timeline.seconds,
            result,
            disturbed=timeline.disturbed,
            generator_full=timeline.generator_full,
            load=load.testid,
            speed=self._speed(timeline) if self._cpu_bound else None,
        )

    def drain(self) -> float:
        """Wait until the target is as quick to answer that it is ready as before any load."""
        started = time.monotonic()
        time.sleep(_SHORTEST_DRAIN)
        while time.monotonic() - started < _LONGEST_DRAIN and not self._is_quick():
            time.sleep(_POLL_SECONDS)
        return time.monotonic() - started

    def _is_quick(self) -> bool:
        # An overloaded target may answer that it is not ready, or not at all; the next load tells.
        try:
            return self._time_ready() < 2 * self._ready_seconds + _QUICK_ANSWER
        except LabError:
            return False

    def _time_ready(self) -> float:
        started = time.monotonic()
        self.target.require_ready()
        return time.monotonic() - started

    def _load(self, kind: str, profile: str) -> Load:
        return Load(
            profile,
            self.scenario,
            only=self.only,
            bound_ms=round(self.slo.p95_seconds * 1000),
            testid=f"{self.folder.name}-{self._sent + 1}-{kind}",
        )

    def _bottleneck(self, rate: float, timeline: "_LoadTimeline") -> Diagnosis | None:
        """Return what limited the target during a hold that failed."""
        count = len(timeline.seconds)
        if timeline.run is None or count <= _FIRST_SEEN:
            return None
        seconds = timeline.seconds[_FIRST_SEEN:]
        rates = Rates(
            fmean(second.answered for second in seconds),
            in_system=fmean(second.in_flight for second in seconds),
        )
        start = timeline.started + _FIRST_SEEN
        seen = period_between(
            rates, timeline.run.signals, timeline.cpu, start, timeline.started + count
        )
        if seen is None:
            return None
        settings = settings_of(self.engine)
        errors = sum(second.failed for second in timeline.seconds)
        facts = Facts(
            saturated=seen,
            p95_limit=self.slo.p95_seconds,
            alone=self._alone,
            limited_by=Limit.GENERATOR if timeline.generator_full else Limit.TARGET,
            rejections={**timeline.run.rejections, "limit": self._too_many_requests(timeline)},
            logged=timeline.run.logged,
            by_errors=errors > self.slo.max_errors * sum(s.answered for s in timeline.seconds),
            unseen=timeline.run.unseen,
            failed=round(errors),
            observed=self.target.is_observed,
            **limits_of(self.target.url, settings, seen),
        )
        return diagnose(facts)

    def _operations(self, timeline: "_LoadTimeline") -> list[OperationResult]:
        """Return the operations of a hold that failed."""
        prometheus = Prometheus(settings_of(self.engine).prometheus_url)
        bounds = Bounds(1000 * self.slo.p95_seconds, self.slo.max_errors)
        span = (timeline.started, len(timeline.seconds))
        with suppress(PrometheusUnavailable):
            return operation_results(timeline.load.testid, *span, bounds, prometheus)
        return []

    def _too_many_requests(self, timeline: "_LoadTimeline") -> int:
        """Return how many requests of a hold were refused by a limit."""
        prometheus = Prometheus(settings_of(self.engine).prometheus_url)
        query = queries.requests(queries.load(queries.one_run(timeline.load.testid)), "status")
        with suppress(PrometheusUnavailable):
            counts = prometheus.instant_by_label(query, "status", time.time())
            return round(counts.get(TOO_MANY_REQUESTS, 0.0))
        return 0

    def _is_cpu_bound(self, timeline: "_LoadTimeline") -> bool:
        """Return whether the target's CPUs were full at the end of a ramp. Where it shares them
        with the load generator, or the lab does not see it, nobody knows.
        """
        end = timeline.started + len(timeline.seconds)
        use = busy_between(timeline.cpu, end - _SATURATED_SECONDS, end)
        is_known = self._target_cpus and self.target.is_observed
        return bool(is_known and use and use.target > FULL_CPU)

    def _speed(self, timeline: "_LoadTimeline", start: float = 0) -> float | None:
        """Return the requests per CPU second of the target, from a second of the load on."""
        end = len(timeline.seconds)
        # Each sample is of the second before it.
        first, last = timeline.started + start + 1, timeline.started + end
        uses = [use for use in timeline.cpu if first <= use.at <= last]
        if not uses or timeline.totals is None:
            return None
        begun = uses[0].at - 1 - timeline.started
        good = timeline.totals.good
        answered = good.at(uses[-1].at) - good.at(timeline.started + begun)
        seconds = sum(use.target for use in uses) * self._target_cpus
        return answered / seconds if answered > 0 and seconds else None

    def _follow(self, load: Load, is_clear: Callable[[list[Second]], bool]) -> "_LoadTimeline":
        """Send a load until it is clear."""
        url = settings_of(self.engine).prometheus_url
        timeline = _LoadTimeline(RunningLoad(load.testid, url), self.slo, is_clear)
        run = self._run(load, timeline)
        if not timeline.seconds:
            raise LabError(
                f"Prometheus recorded nothing of {load.testid}. See `lab logs prometheus`, and "
                f"{run.folder}."
            )
        timeline.cpu, timeline.run = run.cpu, run
        foreign = self.target.is_observed
        timeline.disturbed |= is_disturbed(run.cpu, timeline.started, foreign=foreign)
        self.details[load.testid] = _details(run, timeline)
        return timeline

    def _run(self, load: Load, should_stop: "_LoadTimeline | None" = None) -> Run:
        self._sent += 1
        folder = self.folder / load.testid.removeprefix(f"{self.folder.name}-")
        run = run_k6(self.engine, self.target, load, folder, should_stop)
        require_same_pages(load.testid, run.page_change)
        self.not_counted = run.unseen_services
        return run


@dataclass
class _LoadTimeline:
    """Follows a load by k6's pushes; called every second, it returns whether the load may end."""

    load: RunningLoad
    slo: Slo
    is_clear: Callable[[list[Second]], bool]
    seconds: list[Second] = field(default_factory=list)
    totals: Totals | None = None
    generator_full: bool = False
    disturbed: bool = False
    cpu: Sequence[CpuUse] = ()
    run: Run | None = None

    def __call__(self, plan: Plan, cpu: list[CpuUse]) -> bool:
        full = bool(self.load.started) and generator_is_full(cpu, self.started)
        self.generator_full = full and _is_generators_own(cpu)
        if self.generator_full:
            return True
        try:
            seconds = self.load.recorded_seconds()
            if self.seconds and not seconds:
                # A gap between the pushes: the rest would never be recorded.
                self.disturbed = True
                return True
            if int(seconds) <= len(self.seconds):
                return False
            self.totals = self.load.totals(seconds)
        except LabError:
            # Prometheus may answer again in a second.
            return False
        self.seconds = timeline_of(self.totals, plan, seconds, self.slo)
        return self.is_clear(self.seconds)

    @property
    def started(self) -> float:
        return self.load.started or 0.0

    def histogram(self, start: float, end: float) -> Histogram:
        """Return the response times between two seconds of the load."""
        if self.totals is None:
            return {}
        return self.totals.durations.between(self.started + start, self.started + end)


def _is_generators_own(cpu: Sequence[CpuUse]) -> bool:
    """Return whether the generator's CPUs are full of k6's work, not of a target's that shares
    them, or of other programs'.
    """
    now = cpu[-1].at
    return limit_of_cpu(busy_between(cpu, now - WINDOW_SECONDS, now)) is Limit.GENERATOR


def _is_saturated(seconds: Sequence[Second], slo: Slo) -> bool:
    """Return whether responses were late, or more and more requests in flight, for long enough."""
    last = seconds[-_LATE_SECONDS:]
    return len(last) == _LATE_SECONDS and all(_is_behind(second, slo) for second in last)


def _is_behind(second: Second, slo: Slo) -> bool:
    bad = _bad(second, slo)
    many = bad >= _MIN_LATE and bad > _LATE_NOW * (second.answered + second.overdue)
    return many or second.in_flight > 2 * slo.p95_seconds * second.arrived + _FEW_IN_FLIGHT


def _bad(second: Second, slo: Slo) -> float:
    """Return the late requests, and those that failed beyond what the SLO allows."""
    too_many_failed = max(second.failed - slo.max_errors * second.answered, 0.0)
    return second.late + second.overdue + too_many_failed


def _late_from(seconds: Sequence[Second], slo: Slo) -> float | None:
    """Return the rate from which responses were late to the end of a ramp; None if they were not.

    Responses are counted when they arrive, a limit after their request.
    """
    found = None
    for second in reversed(seconds):
        if _bad(second, slo) <= LATE_SHARE * second.answered:
            break
        found = second.arrived
    return found


def _variation(histogram: Histogram) -> float:
    """Return the standard deviation ÷ the mean of the response times."""
    count = sum(histogram.values())
    if not count:
        return 1.0
    middles = [((lower + upper) / 2, number) for (lower, upper), number in histogram.items()]
    mean = sum(middle * number for middle, number in middles) / count
    variance = sum((middle - mean) ** 2 * number for middle, number in middles) / count
    return math.sqrt(variance) / mean if mean else 1.0


def is_disturbed(cpu: Sequence[CpuUse], started: float, *, foreign: bool) -> bool:
    """Return whether the machine stood still during a load that began at `started` (Unix time), or
    its CPUs were taken by the hypervisor or, if `foreign` programs can be told from the target's,
    by those.
    """
    uses = [use for use in cpu if use.at > started]
    if len(uses) < 2:
        return False
    late = any(b.at - a.at > _LATE_SAMPLE for a, b in pairwise(uses))
    steal = max(use.steal for use in uses) > _MUCH_STEAL
    others = foreign and fmean(use.others for use in uses) > _OTHER_CORES
    return late or steal or others


def _details(run: Run, timeline: _LoadTimeline) -> LoadDetails:
    end = float(len(timeline.seconds))
    times = timeline.histogram(0, end)
    use = busy_between(run.cpu, timeline.started, timeline.started + end)
    return LoadDetails(
        p50_ms=_milliseconds(times, 0.50),
        p95_ms=_milliseconds(times, 0.95),
        p99_ms=_milliseconds(times, 0.99),
        target_cpu=round(use.target, 3) if use else None,
        generator_cpu=round(use.load, 3) if use else None,
        services={name: round(cores, 3) for name, cores in use.services.items()} if use else {},
        cpu_speed=run.cpu_speed,
        memory_bytes=memory_peak(run.cpu),
    )


def _milliseconds(histogram: Histogram, share: float) -> float | None:
    value = quantile(histogram, share)
    return None if value is None else round(1000 * value, 1)
