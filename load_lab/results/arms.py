"""Arms: what is measured in rounds, one after the other."""

from collections.abc import Sequence
from typing import TypeVar

_Arm = TypeVar("_Arm")


def alternate(arms: Sequence[_Arm], number: int) -> Sequence[_Arm]:
    """Return the arms in the order of a round, from 0 on: forward, then backward, so that drift
    (the clock, other programs, the disk's cache) favours none.
    """
    return arms if number % 2 == 0 else arms[::-1]
