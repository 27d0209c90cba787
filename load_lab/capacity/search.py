"""The search for a capacity: which loads follow each other, and when its interval is known. Pure:
it sees a target only through `Loads`.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from statistics import stdev

from scipy import stats

from load_lab.capacity.judgement import HoldPlan
from load_lab.capacity.outcomes import Alone, Capacity, Hold, Loads, Outcome, Ramp
from load_lab.capacity.posterior import Posterior
from load_lab.capacity.timeline import LATE_SHARE, Slo

# Lengths of a hold, in seconds: to find the capacity, and to confirm it.
_SHORTEST, _USUAL, _CONFIRMING, _LONGEST = 6, 15, 20, 30
# Of a larger budget, holds may take this part each.
_BUDGET_PARTS = 6
# No further ramp begins after this share of the budget: the holds need the rest.
_RAMPS_SHARE = 0.5
# Seconds between two holds: the drain, and the load generator's start.
_BETWEEN_HOLDS = 7
# Requests of a hold, for response times that differ as much as their mean.
_REQUESTS = 1200
_MIN_HOLDS = 2
# The confirmation begins at this multiple of the wanted precision: its holds narrow it further.
_NARROW = 1.2
# Repeats of what the machine disturbed.
_MAX_TRIES = 5
# The rates of the confirmation, in relation to the estimate; how far the estimate may move onto
# one of them later; and how far apart they may be.
_BELOW, _ABOVE, _TOUCHES, _MAX_GAP = 1 / 1.025, 1.03, 1.005, 1.13
# No rate meets the SLO if requests sent one at a time exceed it, by more than this chance allows.
_CHANCE = 0.001
# Where the ramps begin, in relation to the rate of one request at a time, and to the first reading.
_FIRST_SHARE, _SECOND_SHARE = 0.5, 1 / 3
_SHORTEST_RESPONSE = 0.001
_LOWEST_RATE = 0.5
# By how much a ramp shows that the one before has warmed the target up; by which factor, and the
# estimate, that it became faster.
_FASTER, _ROSE = 0.08, 1.3
_MAX_RAMPS = 4
# Responses are late somewhat after the capacity was exceeded.
_LATE_FACTOR = 0.95
# How far the capacity may be from a ramp's reading, whose last seconds count; and how much later
# than the capacity responses are usually late. Later still, an overload slows the target down.
_READING_SPREAD, _READING_SECONDS = 0.12, 3
_USUAL_LATENESS = 0.15
# How far above the capacity holds end either way equally often, by simulation: for any target, by
# the variation of its response times, and by the distance of its SLO from saturation.
_BIAS, _BIAS_OF_VARIATION, _BIAS_OF_DISTANCE = 0.006, 0.010, 0.4
_MOST_BIASED_VARIATION = 1.5
# How much holds near the capacity may end either way, at least: of all targets simulated.
_LEAST_BLUR = 0.022
# With more, a hold confirms nothing.
_MOST_BLUR = 0.045
# By this factor, holds contradict each other.
_CONTRADICTS = 1.05
# Of the holds; with more that the machine disturbed, they are why there is no confirmation.
_MANY_VOID = 0.3
# Of the CPUs' speed between holds; with more, it is why the interval is wide.
_NOISY_SPREAD = 0.03
_NOISY = "the machine is too noisy to narrow this further"
# The holds of the confirmation are that close to each other, and the lower one to the estimate.
_CLOSE, _FARTHEST = 1.08, 0.94
# A CPU second more or less at the ends of a hold; and half the width of an interval of 90 %.
_SPEED_ERROR, _INTERVAL_ERRORS = 0.15, 1.65
# Of the variation of response times: what is measured of a few, and heavy tails.
_LEAST_VARIATION, _MOST_VARIATION = 0.3, 3.0
# Seconds after a load within which a target answers as before it.
_SLOW_RECOVERY = 10.0
# Quantiles of the posterior that make the interval; by simulation, it covers nine in ten.
_INTERVAL, _WIDE_INTERVAL = (0.06, 0.94), (0.02, 0.98)


def find_capacity(
    loads: Loads,
    slo: Slo,
    *,
    budget: float = 240,
    precision: float = 0.05,
    report: Callable[[Hold], None] = lambda _hold: None,
) -> Capacity:
    """Search the capacity of a target: no load begins later than `budget` seconds after the first.

    It is precise enough when the posterior's range of 80 % is at most `precision` wide. `report` is
    called after each hold.
    """
    return _Search(loads, slo, budget, precision, report).run()


class _Search:
    def __init__(
        self,
        loads: Loads,
        slo: Slo,
        budget: float,
        precision: float,
        report: Callable[[Hold], None],
    ) -> None:
        self._loads, self._slo, self._report = loads, slo, report
        self._budget, self._precision = budget, precision
        self._started = loads.now()
        self._holds: list[Hold] = []
        self._notes: list[str] = []

    def run(self) -> Capacity:
        alone = self._alone()
        if self._is_too_slow(alone):
            # The first requests of a new process take longest.
            alone = self._alone()
        if self._is_too_slow(alone):
            return self._capacity("too_slow", alone, None, 0.0, 0.0)
        try:
            return self._search(alone)
        except _GeneratorFullError as full:
            return self._capacity("generator", alone, full.rate, full.rate, math.inf)

    def _search(self, alone: Alone) -> Capacity:
        ramp = self._ramps(alone)
        self._speeds = _Speeds(ramp)
        self._variation = min(max(ramp.variation, _LEAST_VARIATION), _MOST_VARIATION)
        reading = max(min(ramp.answered, _LATE_FACTOR * (ramp.late_from or math.inf)), _LOWEST_RATE)
        by_chance = self._variation / math.sqrt(_READING_SECONDS * reading)
        collapse = math.log(_LATE_FACTOR * (ramp.late_from or reading) / reading) - _USUAL_LATENESS
        self._posterior = Posterior(reading, max(_READING_SPREAD, by_chance, collapse))
        self._narrow()
        self._confirm()
        return self._answer(alone, reading)

    def _answer(self, alone: Alone, reading: float) -> Capacity:
        if self._posterior.median > _ROSE * reading:
            self._note(
                f"the capacity rose during the measurement: {reading:.3g} to "
                f"{self._posterior.median:.3g}/s"
            )
        low, high = self._interval()
        confirmed = self._is_confirmed()
        if not confirmed:
            self._note(self._why_unconfirmed())
        outcome: Outcome = "confirmed" if confirmed else "unconfirmed"
        speed = self._speeds.mean
        answer = self._capacity(
            outcome, alone, self._posterior.median * speed, low * speed, high * speed
        )
        return replace(
            answer, below=self._below(), above=self._above(), speed_spread=self._speeds.spread
        )

    def _capacity(
        self, outcome: Outcome, alone: Alone, rate: float | None, low: float, high: float
    ) -> Capacity:
        return Capacity(
            outcome,
            rate,
            low,
            high,
            alone,
            holds=tuple(self._holds),
            notes=tuple(self._notes),
            seconds=self._elapsed(),
        )

    def _elapsed(self) -> float:
        return self._loads.now() - self._started

    def _note(self, text: str) -> None:
        self._notes.append(text)

    # The loads

    def _alone(self) -> Alone:
        alone = self._loads.alone()
        for _ in range(_MAX_TRIES - 1):
            if not alone.disturbed or self._is_over():
                break
            alone = self._loads.alone()
        return alone

    def _is_too_slow(self, alone: Alone) -> bool:
        late = _exceeds(alone.late, alone.requests, LATE_SHARE)
        failed = _exceeds(alone.failed, alone.requests, self._slo.max_errors)
        return not alone.disturbed and (late or failed)

    def _is_over(self, share: float = 1.0) -> bool:
        return self._elapsed() > share * self._budget

    def _ramps(self, alone: Alone) -> Ramp:
        """Return the second of two ramps, or a later one: each may have warmed the target up."""
        first = ramp = self._ramp(_FIRST_SHARE / max(alone.median_seconds, _SHORTEST_RESPONSE))
        for _ in range(_MAX_RAMPS):
            if self._is_over(_RAMPS_SHARE):
                break
            before = ramp
            reading = min(before.answered, before.late_from or math.inf)
            ramp = self._ramp(max(_SECOND_SHARE * reading, _LOWEST_RATE))
            by_chance = 3 * ramp.variation / math.sqrt(max(_READING_SECONDS * before.answered, 1))
            if ramp.answered < (1 + max(_FASTER, by_chance)) * before.answered:
                break
        if ramp.answered > _ROSE * first.answered:
            self._note(
                f"the target was faster than at first: {first.answered:.3g}/s, then "
                f"{ramp.answered:.3g}/s"
            )
        return ramp

    def _ramp(self, start: float) -> Ramp:
        """Return the first ramp that the machine did not disturb, or the one that went farthest."""
        ramps = list[Ramp]()
        while not ramps or (
            ramps[-1].disturbed and len(ramps) < _MAX_TRIES and not self._is_over(_RAMPS_SHARE)
        ):
            ramps.append(self._loads.ramp(start))
            self._drain(ramps[-1].highest)
            if ramps[-1].generator_full:
                raise _GeneratorFullError(ramps[-1].answered)
        return max(ramps, key=lambda ramp: (not ramp.disturbed, ramp.answered))

    def _drain(self, rate: float) -> None:
        seconds = self._loads.drain()
        if seconds > _SLOW_RECOVERY:
            self._note(f"the target recovers slowly: after {rate:.3g}/s it needed {seconds:.0f} s")

    def _narrow(self) -> None:
        """Hold the most informative rate, until the posterior is narrow or the confirmation has to
        begin.
        """
        reserve = 2 * (_CONFIRMING + _BETWEEN_HOLDS)
        while self._elapsed() < self._budget - reserve:
            width = self._posterior.quantile(0.9) / self._posterior.quantile(0.1) - 1
            if width < _NARROW * self._precision and len(self._holds) >= _MIN_HOLDS:
                break
            self._hold(self._posterior.median, _USUAL)

    def _confirm(self) -> None:
        """Hold rates just below and just above the estimate, until they enclose it, and it is
        narrow.
        """
        while not self._is_confirmed() and not self._is_over():
            below = self._below()
            is_below = below is not None and self._unit(below) > _FARTHEST * self._posterior.median
            if self._is_enclosed():
                is_below = self._holds[-1].passed
            self._hold(self._posterior.median * (_ABOVE if is_below else _BELOW), _CONFIRMING)

    def _hold(self, unit: float, usual: int) -> Hold:
        """Hold a rate, given for the first speed, and again if the machine disturbed it; learn from
        it.
        """
        rate = unit * self._speeds.mean
        wanted = _REQUESTS * (0.1 + 0.8 * self._variation**2) / rate
        longest = max(_LONGEST, int(self._budget / _BUDGET_PARTS))
        plan = HoldPlan(_SHORTEST, int(min(max(wanted, usual), longest)), longest)
        for _ in range(_MAX_TRIES):
            hold = self._loads.hold(rate, plan)
            self._report(hold)
            self._drain(rate)
            if not hold.is_void or self._is_over():
                break
        self._holds.append(hold)
        if hold.generator_full:
            passed = [held.rate for held in self._holds if held.passed]
            raise _GeneratorFullError(max(passed, default=hold.answered))
        if not hold.is_void:
            self._learn(hold)
        return hold

    # What they say

    def _learn(self, hold: Hold) -> None:
        self._speeds.add(hold)
        bias = _BIAS + _BIAS_OF_VARIATION * min(self._variation, _MOST_BIASED_VARIATION)
        bias += _BIAS_OF_DISTANCE * self._distance(hold.rate)
        unit, blur = self._unit(hold), self._blur(hold)
        self._posterior.update(unit, passed=hold.passed, blur=blur, bias=bias)

    def _unit(self, hold: Hold) -> float:
        """Return the rate of a hold as it would have been at the first speed."""
        return hold.rate / self._speeds.ratio(hold.speed)

    def _distance(self, rate: float) -> float:
        """Return how far the SLO's limit is below saturation, roughly: in heavy traffic it grows
        with the variance ÷ the requests within the limit.
        """
        return self._variation**2 / (rate * self._slo.p95_seconds)

    def _blur(self, hold: Hold) -> float:
        """Return by how much of the capacity holds like this one may end either way.

        By simulation: the fewer requests, and the farther the SLO's limit is below saturation. The
        speed of the CPUs is known by samples of a second.
        """
        requests = max(hold.rate * len(hold.seconds), 1)
        by_chance = 1.2 * math.sqrt((0.1 + 0.8 * self._variation**2) / requests)
        by_speed = _SPEED_ERROR / max(len(hold.seconds), 1) if hold.speed else 0.0
        return max(_LEAST_BLUR, math.hypot(by_chance, by_speed, self._distance(hold.rate)))

    def _below(self) -> Hold | None:
        """Return the highest hold that passed below the estimate, or close to it."""
        limit = self._posterior.median * _TOUCHES
        passed = [hold for hold in self._decisive() if hold.passed and self._unit(hold) <= limit]
        return max(passed, key=self._unit, default=None)

    def _above(self) -> Hold | None:
        """Return the lowest hold that failed above the estimate, or close to it."""
        limit = self._posterior.median / _TOUCHES
        failed = [
            hold for hold in self._decisive() if not hold.passed and self._unit(hold) >= limit
        ]
        return min(failed, key=self._unit, default=None)

    def _decisive(self) -> list[Hold]:
        return [hold for hold in self._valid() if self._blur(hold) < _MOST_BLUR]

    def _valid(self) -> list[Hold]:
        return [hold for hold in self._holds if not hold.is_void]

    def _is_enclosed(self) -> bool:
        below, above = self._below(), self._above()
        return bool(below and above and self._unit(above) / self._unit(below) < _CLOSE)

    def _is_confirmed(self) -> bool:
        low, high = self._interval()
        return self._is_enclosed() and high / low < _MAX_GAP

    def _interval(self) -> tuple[float, float]:
        """Return the posterior's interval, widened to every hold that contradicts it, and by the
        error of the mean speed.
        """
        quantiles = _INTERVAL if self._decisive() else _WIDE_INTERVAL
        low, high = (self._posterior.quantile(share) for share in quantiles)
        valid = self._valid()
        low = min([low, *(self._unit(hold) for hold in valid if not hold.passed)])
        high = max([high, *(self._unit(hold) for hold in valid if hold.passed)])
        median, error = self._posterior.median, _INTERVAL_ERRORS * self._speeds.error
        return (
            median / math.exp(math.hypot(math.log(median / low), error)),
            median * math.exp(math.hypot(math.log(high / median), error)),
        )

    def _why_unconfirmed(self) -> str:
        if not self._holds:
            return "the budget ended during the ramps; use a longer --budget"
        valid = self._valid()
        void = len(self._holds) - len(valid)
        if void > _MANY_VOID * len(self._holds):
            return f"{_NOISY}: {void} of {len(self._holds)} holds failed while disturbed"
        if not any(hold.passed for hold in valid):
            lowest = min((hold.rate for hold in valid), default=0.0)
            return f"no load passed, not even one of {lowest:.3g}/s: perhaps no rate meets this SLO"
        if not self._decisive():
            requests = sum(second.answered for hold in valid for second in hold.seconds)
            return f"{requests:.0f} requests can't narrow it further; use a longer --budget"
        passed = max((self._unit(hold) for hold in valid if hold.passed), default=0.0)
        failed = min((self._unit(hold) for hold in valid if not hold.passed), default=math.inf)
        if passed > failed * _CONTRADICTS:
            return f"{_NOISY}: {failed:.3g}/s failed, and {passed:.3g}/s passed"
        if self._is_enclosed() and self._speeds.spread > _NOISY_SPREAD:
            return f"{_NOISY}: the speed of its CPUs varied by ±{self._speeds.spread:.0%}"
        return "the budget ended before the confirmation; use a longer --budget"


def _exceeds(count: float, of: float, share: float) -> bool:
    """Return whether more than this share of the requests is among them, not by chance."""
    test = stats.binomtest(round(count), round(of), share, alternative="greater")
    return bool(test.pvalue < _CHANCE) or count > of / 2


class _Speeds:
    """The speeds of the target's CPUs in relation to the ramp's; 1 where they don't matter."""

    def __init__(self, ramp: Ramp) -> None:
        self._first = ramp.speed
        self._ratios = [1.0]
        self._seconds = [float(_USUAL)]

    def add(self, hold: Hold) -> None:
        if self._first and hold.speed:
            self._ratios.append(self.ratio(hold.speed))
            self._seconds.append(float(len(hold.seconds)))

    def ratio(self, speed: float | None) -> float:
        return speed / self._first if speed and self._first else 1.0

    @property
    def mean(self) -> float:
        pairs = zip(self._ratios, self._seconds, strict=True)
        return sum(ratio * seconds for ratio, seconds in pairs) / sum(self._seconds)

    @property
    def spread(self) -> float:
        """Return the standard deviation ÷ the mean."""
        return stdev(self._ratios) / self.mean if len(self._ratios) > 1 else 0.0

    @property
    def error(self) -> float:
        """Return the relative standard error of the mean."""
        return self.spread / math.sqrt(len(self._ratios))


class _GeneratorFullError(Exception):
    """The load generator is the limit; the target sustains `rate` at least."""

    def __init__(self, rate: float) -> None:
        super().__init__(rate)
        self.rate = rate
