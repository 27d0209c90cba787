"""What the reference server does: when a request that comes now is to be answered.

Times are those of a monotonic clock, in seconds. It reads no clock itself, so tests need none.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

Kind = Literal["fixed", "exponential", "queue", "work"]

# So that a run's times can be drawn again.
_SEED = 20261122
# Some 5 ms of a CPU: as many turns as lab/host/noise.py takes for one look, and a half more.
_TURNS_PER_MS = 20_000


class Rule(Protocol):
    """One law at work."""

    def due(self, now: float) -> float:
        """When the request that came at `now` is to be answered."""


@dataclass(frozen=True)
class Law:
    """A kind of server and its time: the answer's, its mean, the service's or the work's, in ms."""

    kind: Kind
    ms: float

    def rule(self) -> Rule:
        return RULES[self.kind](self.ms / 1000)

    @property
    def capacity(self) -> float | None:
        """Answers per second at most; None without a limit, or with one of the machine."""
        return 1000 / self.ms if self.kind == "queue" else None

    @property
    def timed(self) -> bool:
        """Whether a timer says when an answer is due, and not the machine."""
        return self.kind != "work"

    def __str__(self) -> str:
        return _SAID[self.kind].format(ms=self.ms, capacity=self.capacity)


_SAID: dict[Kind, str] = {
    "fixed": "each answer takes {ms:g} ms",
    "exponential": "answers take {ms:g} ms on average, drawn from an exponential distribution",
    "queue": "one after the other, {ms:g} ms each: {capacity:g}/s and no more",
    "work": "each answer takes some {ms:g} ms of the CPU",
}


class Fixed:
    """Each answer takes the same time, however many are under way."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def due(self, now: float) -> float:
        return now + self._seconds


class Exponential:
    """Each answer takes a time of its own, however many are under way."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._random = random.Random(_SEED)  # noqa: S311 - nothing is secret

    def due(self, now: float) -> float:
        return now + self._random.expovariate(1 / self._seconds)


class Queue:
    """One server and its queue, in virtual time: what is late in reality delays no other answer."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._free = 0.0

    def due(self, now: float) -> float:
        self._free = max(self._free, now) + self._seconds
        return self._free


class Work:
    """Each answer takes a piece of work that is always the same: how long, the machine says."""

    def __init__(self, seconds: float) -> None:
        self._turns = int(seconds * 1000 * _TURNS_PER_MS)

    def due(self, now: float) -> float:
        sum(i * i for i in range(self._turns))
        return now


RULES: dict[Kind, Callable[[float], Rule]] = {
    "fixed": Fixed,
    "exponential": Exponential,
    "queue": Queue,
    "work": Work,
}
