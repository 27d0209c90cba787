"""What is known of a capacity: a probability for each rate, updated by the outcome of each hold.
Pure.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Floats = NDArray[np.float64]

# The grid over the logarithm of the capacity, from 0.08 to 3 times the first estimate.
_LOWEST, _HIGHEST, _STEP = 0.08, 3.0, 0.005
# Before the first hold: mostly near the first estimate, perhaps anywhere.
_ANYWHERE = 0.25
# Share of holds whose outcome is wrong whatever the rate, such as by a stall.
_WRONG = 0.03


class Posterior:
    """The probability of each capacity."""

    def __init__(self, centre: float, spread: float) -> None:
        self._logs = math.log(centre) + np.arange(math.log(_LOWEST), math.log(_HIGHEST), _STEP)
        near = np.exp(-0.5 * ((self._logs - math.log(centre)) / spread) ** 2)
        anywhere = np.full_like(near, 1 / len(near))
        self._density: Floats = (1 - _ANYWHERE) * near / near.sum() + _ANYWHERE * anywhere

    def update(self, rate: float, *, passed: bool, blur: float, bias: float) -> None:
        """Learn from a hold. In relation to the capacity, holds near it may end either way by
        `blur`, and do so equally often `bias` above it: an overload shows late.
        """
        above = (math.log(rate) - self._logs - bias) / blur
        fails = _WRONG + (1 - 2 * _WRONG) * ndtr(above)
        product = self._density * (1 - fails if passed else fails)
        self._density = product / product.sum()

    def quantile(self, share: float) -> float:
        """Return the rate below which the capacity is with that probability."""
        return math.exp(float(np.interp(share, np.cumsum(self._density), self._logs)))

    @property
    def median(self) -> float:
        return self.quantile(0.5)
