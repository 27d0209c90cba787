"""A figure beside its bound."""

from dataclasses import asdict, dataclass
from typing import Any

from lab.analysis.breakpoint import PUSH_SECONDS, Bounds

# What arrives just before the end of an overload is due a bound and a push later
# (lab/analysis/breakpoint.py): no window that begins before then can be a good one.
SOONEST_SECONDS = Bounds().p95_ms / 1000 + PUSH_SECONDS


@dataclass(frozen=True)
class Figure:
    """`value` is None when it was not seen, which keeps no bound."""

    what: str
    bound: float
    at_most: bool
    value: float | None

    @property
    def kept(self) -> bool:
        """Whether the bound was kept."""
        if self.value is None:
            return False
        return self.value <= self.bound if self.at_most else self.value >= self.bound

    def document(self) -> dict[str, Any]:
        return {**asdict(self), "kept": self.kept}


def at_most(what: str, bound: float, value: float | None) -> Figure:
    return Figure(what, bound, True, value)


def at_least(what: str, bound: float, value: float | None) -> Figure:
    return Figure(what, bound, False, value)
