"""Judge a hold, which is a load at a constant rate: does the target sustain it? Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from load_lab.capacity.timeline import LATE_SHARE, Growth, Second, Slo, growth

# No hold is judged by its late responses earlier: the first seconds of a load are its slowest.
_FIRST_SECONDS = 3
# A hold passes early with this many requests, and a share of late ones well below the limit.
_MIN_REQUESTS = 400
# With fewer, means of a second are too uncertain for a growth.
_MIN_GROWING = 200
_CLEARLY_FEW = LATE_SHARE / 2
# Late responses come in bursts. A hold fails by them when there are several, and still at its end.
_MIN_LATE = 8
_LATE_NOW = 0.25
_RECENT_SECONDS = 3
_MIN_ERRORS = 5
_MIN_ERROR_SHARE = 0.03
# Requests in flight, as a multiple of those that a target at its limit has.
_MAX_IN_FLIGHT = 2.5
# Requests in flight that any target may have, whatever the rate.
_FEW_IN_FLIGHT = 8
# How far a growing response time is extrapolated before the hold passes or fails, as a multiple of
# the SLO's limit: an overload by 1 % makes responses that late.
_AHEAD_TO_PASS = 200
_AHEAD_TO_FAIL = 100
# Between these shares of late responses, a hold of the usual length does not decide.
_UNDECIDED = (0.012, 0.12)
# Errors of the slope from which it is no accident: at any time, and at the end of a hold.
_CERTAIN, _LIKELY = 3, 2


@dataclass(frozen=True)
class HoldPlan:
    """How long a hold lasts, in seconds: at least, usually, and at most."""

    shortest: int
    usual: int
    longest: int


@dataclass(frozen=True)
class Judgement:
    """Whether a hold passed; if not, `reason` tells which limit it exceeded, and how."""

    passed: bool
    reason: str = ""


def judge(rate: float, seconds: Sequence[Second], slo: Slo, plan: HoldPlan) -> Judgement | None:
    """Return the judgement of a hold by its seconds so far; None as long as it is not clear.

    An overload by a few percent takes minutes to make responses late, since they have to queue up
    first. So a hold is judged by the growth of its response times as well.
    """
    if len(seconds) < _FIRST_SECONDS:
        return None
    failure = _clear_failure(rate, seconds, slo, plan)
    if failure or len(seconds) < plan.shortest:
        return failure
    counts, trend = _Counts.of(seconds), growth(seconds)
    if len(seconds) >= plan.usual:
        return _at_the_end(counts, trend, slo, at_its_longest=len(seconds) >= plan.longest)
    return _early(counts, trend, slo)


@dataclass(frozen=True)
class _Counts:
    requests: float
    late: float
    failed: float

    @classmethod
    def of(cls, seconds: Sequence[Second]) -> "_Counts":
        """Count requests that are overdue at the end among the late ones."""
        overdue = seconds[-1].overdue
        return cls(
            sum(second.answered for second in seconds) + overdue,
            sum(second.late for second in seconds) + overdue,
            sum(second.failed for second in seconds),
        )

    @property
    def late_share(self) -> float:
        return self.late / max(self.requests, 1)


def _clear_failure(
    rate: float, seconds: Sequence[Second], slo: Slo, plan: HoldPlan
) -> Judgement | None:
    counts = _Counts.of(seconds)
    errors = counts.failed / max(counts.requests, 1)
    if errors > slo.max_errors and counts.failed >= max(
        _MIN_ERRORS, _MIN_ERROR_SHARE * counts.requests
    ):
        return _too_many_errors(counts, slo)
    # A stall at the beginning is not yet too much of a hold of the usual length.
    allowed = LATE_SHARE * max(counts.requests, rate * plan.usual)
    if counts.late > max(allowed, _MIN_LATE):
        recent = _Counts.of(seconds[-_RECENT_SECONDS:])
        if recent.late_share > _LATE_NOW:
            return _too_many_late(counts, slo)
    waiting = seconds[-1].in_flight
    if waiting > _MAX_IN_FLIGHT * slo.p95_seconds * rate + _FEW_IN_FLIGHT:
        return Judgement(False, f"{waiting:.0f} requests were waiting, and more and more")
    return None


def _at_the_end(
    counts: _Counts, trend: Growth, slo: Slo, *, at_its_longest: bool
) -> Judgement | None:
    if _UNDECIDED[0] < counts.late_share < _UNDECIDED[1] and not at_its_longest:
        return None
    if counts.failed > slo.max_errors * counts.requests:
        return _too_many_errors(counts, slo)
    if counts.late_share > LATE_SHARE:
        return _too_many_late(counts, slo)
    ahead = trend.level + _AHEAD_TO_PASS * slo.p95_seconds * trend.slope
    if trend.slope > _LIKELY * trend.error and ahead > 2 * slo.p95_seconds:
        return _grows(trend)
    return Judgement(True)


def _early(counts: _Counts, trend: Growth, slo: Slo) -> Judgement | None:
    steepest = trend.slope + _LIKELY * trend.error
    highest = trend.level + _AHEAD_TO_PASS * slo.p95_seconds * steepest
    few_late = counts.late_share < _CLEARLY_FEW and counts.requests >= _MIN_REQUESTS
    if few_late and counts.failed <= slo.max_errors * counts.requests and highest < slo.p95_seconds:
        return Judgement(True)
    ahead = trend.level + _AHEAD_TO_FAIL * slo.p95_seconds * trend.slope
    enough = counts.requests >= _MIN_GROWING
    is_growing = (
        enough and trend.slope > _CERTAIN * trend.error and trend.level > 0.3 * slo.p95_seconds
    )
    return _grows(trend) if is_growing and ahead > 2 * slo.p95_seconds else None


def _too_many_errors(counts: _Counts, slo: Slo) -> Judgement:
    share = counts.failed / max(counts.requests, 1)
    return Judgement(False, f"{share:.1%} of the requests failed; allowed: {slo.max_errors:.1%}")


def _too_many_late(counts: _Counts, slo: Slo) -> Judgement:
    limit = f"{slo.p95_seconds * 1000:.0f} ms"
    return Judgement(False, f"{counts.late_share:.0%} of the responses took longer than {limit}")


def _grows(trend: Growth) -> Judgement:
    return Judgement(
        False,
        f"response times grew by {trend.slope * 1000:.0f} ms a second, to "
        f"{trend.level * 1000:.0f} ms",
    )
