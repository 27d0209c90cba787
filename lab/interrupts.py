"""Ctrl-C and TERM: work that they may end, and work that they may not."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from lab.console import note
from lab.errors import Interrupted

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interruptible() -> Iterator[None]:
    """TERM ends what is inside as Ctrl-C does: by an error of ours, after which we clean up."""
    with _handled(signal.default_int_handler):
        try:
            yield
        except KeyboardInterrupt:
            raise Interrupted("Interrupted.") from None


@contextmanager
def uninterrupted(why: str) -> Iterator[None]:
    """Whoever interrupts what is inside is told `why` it goes on. Programs started by it may hear
    the signal all the same.
    """
    with _handled(lambda *_: note(why)):
        yield


@contextmanager
def _handled(handler: object) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in _SIGNALS}  # type: ignore[arg-type]
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
