"""Ctrl-C and TERM: blocks that they end, and blocks that they do not."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from lab.console import note
from lab.errors import Interrupted

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let TERM end the block like Ctrl-C does: with an error of the lab, so that it cleans up.

    Raises:
        Interrupted: Ctrl-C or TERM arrived in the block.
    """
    with _signal_handler(signal.default_int_handler):
        try:
            yield
        except KeyboardInterrupt:
            raise Interrupted("Interrupted.") from None


@contextmanager
def uninterrupted(why: str) -> Iterator[None]:
    """Finish the block in spite of Ctrl-C and TERM, and print `why`. Child processes may still
    receive the signal.
    """
    with _signal_handler(lambda *_: note(why)):
        yield


@contextmanager
def _signal_handler(handler: object) -> Iterator[None]:
    previous = {number: signal.signal(number, handler) for number in _SIGNALS}  # type: ignore[arg-type]
    try:
        yield
    finally:
        for number, old_handler in previous.items():
            signal.signal(number, old_handler)
