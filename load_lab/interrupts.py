"""Ctrl-C, TERM and HUP: blocks that they end, and blocks that they do not."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from load_lab.errors import Interrupted

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_Handler = Callable[[int, FrameType | None], object]


@contextmanager
def interruptible() -> Iterator[None]:
    """Let TERM and HUP end the block like Ctrl-C does: with an error of the lab, so that it cleans
    up.

    Raises:
        Interrupted: one of the signals arrived in the block.
    """
    with handling(signal.default_int_handler):
        try:
            yield
        except KeyboardInterrupt:
            raise Interrupted("Interrupted.") from None


@contextmanager
def uninterrupted(why: str) -> Iterator[None]:
    """Finish the block in spite of Ctrl-C, TERM and HUP, and print `why`. Child processes may still
    receive the signal.
    """
    # Imported when needed: `lab COMMAND --help` imports this module, and Rich is slow to import.
    from load_lab.console import note

    with handling(lambda *_: note(why)):
        yield


@contextmanager
def handling(handler: _Handler) -> Iterator[None]:
    """Call `handler` for the signals in the block. `nohup` has HUP ignored, and it stays so.

    Only the main thread receives signals; in another one the block just runs.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.getsignal(number) for number in SIGNALS}
    handled = [number for number in SIGNALS if previous[number] != signal.SIG_IGN]
    for number in handled:
        signal.signal(number, _detaching(handler))
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, previous[number])


def _detaching(handler: _Handler) -> _Handler:
    """Return a handler that first lets go of a closed terminal: output to it would fail, and so end
    the cleanup.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            _replace_terminals()
        handler(number, frame)

    return handle


def _replace_terminals() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for number in (1, 2):
        if _is_closed(number):
            os.dup2(null, number)
    os.close(null)


def _is_closed(number: int) -> bool:
    """Return whether even an empty write fails."""
    try:
        os.write(number, b"")
    except OSError:
        return True
    return False
