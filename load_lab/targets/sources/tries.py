"""Attempts of one operation, sent one after the other until enough are accepted."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from load_lab.targets.sources.exchange import Exchange

T = TypeVar("T")


@dataclass
class Tries(Generic[T]):
    """What was sent, and how the last attempt ended: an attempt is an address, or a body."""

    accepted: list[T] = field(default_factory=list)
    last: Exchange | None = None
    is_over: bool = False
    _successes: Counter[str] = field(default_factory=Counter)
    _failures: Counter[str] = field(default_factory=Counter)

    def run(
        self,
        send: Callable[[T], Exchange],
        attempts: Iterable[T],
        *,
        enough: int,
        most_failures: int,
        origin: str = "",
    ) -> None:
        """Send attempts until `enough` are accepted in all, or one has no answer: the next would
        take as long. The attempts of an `origin` are given up once so many more have failed than
        succeeded.
        """
        for attempt in attempts:
            is_given_up = self._failures[origin] - self._successes[origin] >= most_failures
            if len(self.accepted) >= enough or self.is_over or is_given_up:
                return
            self.last = send(attempt)
            if self.last.problem or self.is_over:
                self._failures[origin] += 1
            else:
                self._successes[origin] += 1
                self.accepted.append(attempt)
            self.is_over |= self.last.status is None

    def has_accepted(self, origin: str) -> bool:
        return bool(self._successes[origin])
