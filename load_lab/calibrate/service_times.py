"""Service-time models of the reference server: when the response to a new request is due.

Times are seconds of a monotonic clock. The models read no clock, so tests need none.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

Kind = Literal["fixed", "exponential", "queue", "work"]

# Fixed, so that a run's times can be reproduced.
_SEED = 20261122
# Approximate: the 100,000 turns of load_lab/machine/noise.py take about 5 ms of CPU time.
_TURNS_PER_MS = 20_000


class Model(Protocol):
    """A service-time model in use."""

    def due(self, now: float) -> float:
        """Return when the response to the request that arrived at `now` is due."""


@dataclass(frozen=True)
class ServiceTime:
    """A kind of server and its time in ms: of a response, its mean, the service or the work."""

    kind: Kind
    ms: float

    def model(self) -> Model:
        return MODELS[self.kind](self.ms / 1000)

    @property
    def capacity(self) -> float | None:
        """Return the maximum responses per second; None if there is none or the machine sets it."""
        return 1000 / self.ms if self.kind == "queue" else None

    @property
    def uses_timer(self) -> bool:
        """Return whether a timer, not the machine, determines when a response is due."""
        return self.kind != "work"

    def __str__(self) -> str:
        return _DESCRIPTIONS[self.kind].format(ms=self.ms, capacity=self.capacity)


_DESCRIPTIONS: dict[Kind, str] = {
    "fixed": "each answer takes {ms:g} ms",
    "exponential": "answers take {ms:g} ms on average, drawn from an exponential distribution",
    "queue": "one after the other, {ms:g} ms each: {capacity:g}/s and no more",
    "work": "each answer takes some {ms:g} ms of the CPU",
}


class Fixed:
    """Each response takes the same time, regardless of concurrent requests."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def due(self, now: float) -> float:
        return now + self._seconds


class Exponential:
    """Each response takes a random time, regardless of concurrent requests."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._random = random.Random(_SEED)  # noqa: S311 - nothing is secret

    def due(self, now: float) -> float:
        return now + self._random.expovariate(1 / self._seconds)


class Queue:
    """One server and its queue, in virtual time: an actual delay does not delay other responses."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._free = 0.0

    def due(self, now: float) -> float:
        self._free = max(self._free, now) + self._seconds
        return self._free


class Work:
    """Each response needs a constant amount of work; the machine determines how long that takes."""

    def __init__(self, seconds: float) -> None:
        self._turns = int(seconds * 1000 * _TURNS_PER_MS)

    def due(self, now: float) -> float:
        sum(i * i for i in range(self._turns))
        return now


MODELS: dict[Kind, Callable[[float], Model]] = {
    "fixed": Fixed,
    "exponential": Exponential,
    "queue": Queue,
    "work": Work,
}
