"""One figure of the lab's beside what is known of it."""

import math
from dataclasses import dataclass
from typing import Literal

# Noise adds some milliseconds; a figure that is more than twice as much is a wrong one.
MOST_NOISE = 1.0

Outcome = Literal["held", "missed", "void"]


@dataclass(frozen=True)
class Check:
    """`allowed` is how far `found` may be from `expected`: as a share of it, or, with `factor`, how
    many times more or less. Words must be equal, and so must counts: nothing is allowed there.
    `allowed_above` is for what can only be added: how much more it may be, where that is further.
    """

    what: str
    expected: float | str
    found: float | str | None
    allowed: float = 0.0
    unit: str = ""
    factor: bool = False
    allowed_above: float = 0.0
    # What makes a miss say nothing, unless there is no figure, or one of another order.
    void: str = ""

    @property
    def off(self) -> float | None:
        """How far it is, as `allowed` says it; None where there is nothing to compare."""
        if not isinstance(self.expected, int | float) or not isinstance(self.found, int | float):
            return None
        if self.factor:
            return _factor(self.found, self.expected)
        return self.found / self.expected - 1 if self.expected else float(self.found)

    @property
    def outcome(self) -> Outcome:
        if self._holds():
            return "held"
        return "void" if self.void and self._may_be_noise() else "missed"

    def _may_be_noise(self) -> bool:
        return self.off is not None and abs(self.off) <= MOST_NOISE

    def _holds(self) -> bool:
        if not self.allowed:
            return self.expected == self.found
        if self.off is None:
            return False
        return -self.allowed <= self.off <= max(self.allowed, self.allowed_above)


def _factor(found: float, expected: float) -> float:
    """How many times the greater is the less; endless where one is nothing."""
    less, more = sorted((found, expected))
    return more / less if less > 0 else math.inf
