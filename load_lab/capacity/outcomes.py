"""What a search for a capacity gets from the loads that it sends, and what it returns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from load_lab.capacity.judgement import HoldPlan, Judgement
from load_lab.capacity.timeline import Second

Outcome = Literal["confirmed", "unconfirmed", "too_slow", "generator"]


@dataclass(frozen=True)
class Alone:
    """Requests one at a time: their median time, how many were sent, and how many of them were late
    or failed.
    """

    median_seconds: float
    requests: float
    late: float = 0.0
    failed: float = 0.0
    disturbed: bool = False

    @property
    def late_share(self) -> float:
        return self.late / self.requests

    @property
    def failed_share(self) -> float:
        return self.failed / self.requests


@dataclass(frozen=True)
class Ramp:
    """A growing rate, up to where responses were late.

    `answered` is the rate of successful responses in its last seconds, `late_from` the rate from
    which responses were late. `variation` is the standard deviation of the response times ÷ their
    mean, where nothing was queued yet. `speed`: see `Hold`.
    """

    answered: float
    late_from: float | None
    variation: float
    highest: float
    generator_full: bool = False
    disturbed: bool = False
    speed: float | None = None


@dataclass(frozen=True)
class Hold:
    """A constant rate, its timeline and its judgement; `disturbed` by the machine, it says nothing
    if it failed. `load` names it.
    """

    rate: float
    seconds: Sequence[Second]
    judgement: Judgement
    disturbed: bool = False
    generator_full: bool = False
    load: str = ""
    speed: float | None = None

    @property
    def passed(self) -> bool:
        return self.judgement.passed

    @property
    def is_void(self) -> bool:
        return self.disturbed and not self.passed

    @property
    def answered(self) -> float:
        """Return the rate of successful responses."""
        good = sum(second.answered - second.failed for second in self.seconds)
        return good / max(len(self.seconds), 1)


class Loads(Protocol):
    """Sends loads to a target. Times are in seconds."""

    def now(self) -> float: ...

    def alone(self) -> Alone: ...

    def ramp(self, start: float) -> Ramp: ...

    def hold(self, rate: float, plan: HoldPlan) -> Hold: ...

    def drain(self) -> float:
        """Wait until the target answers as it did before any load; return how long that took."""


@dataclass(frozen=True)
class Capacity:
    """What a search found: the estimate, its interval of 90 %, and the holds of the confirmation.

    `rate` is None if no rate meets the SLO; of a generator that is the limit, the highest rate
    that was sustained. `precision` is the half width of the interval in relation to the rate,
    `speed_spread` the standard deviation of the CPU speeds ÷ their mean.
    """

    outcome: Outcome
    rate: float | None
    low: float
    high: float
    alone: Alone
    below: Hold | None = None
    above: Hold | None = None
    holds: tuple[Hold, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    speed_spread: float = 0.0

    @property
    def confirmed(self) -> bool:
        return self.outcome == "confirmed"

    @property
    def precision(self) -> float | None:
        return (self.high - self.low) / 2 / self.rate if self.rate else None
