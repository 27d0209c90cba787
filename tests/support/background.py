"""Work that goes on in a thread while a test does something else."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def repeat_in_thread(action: Callable[[], object], pause: float = 0.1) -> Iterator[None]:
    """Repeat `action` during the block, with a pause of these seconds between two calls."""
    stop = threading.Event()

    def repeat() -> None:
        while not stop.wait(pause):
            action()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
