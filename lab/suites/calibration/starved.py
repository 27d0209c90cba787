"""A load generator without the CPU time that it needs: others compute where it runs."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import psutil

from lab.suites.bench.busy import held_back

# So much nicer than who has the CPU, k6 gets some 10 % of it.
# https://github.com/torvalds/linux/blob/v6.1/kernel/sched/core.c (sched_prio_to_weight)
_NICE, _NICEST = 10, 19
_POLL_SECONDS = 0.1


class Starving:
    """Starves k6 from when the load `has_begun` to the end of `with`: before that it would take
    minutes to start.
    """

    def __init__(self, cpus: str, has_begun: Callable[[], bool]) -> None:
        self._cpus, self._has_begun = cpus, has_begun
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._starve, daemon=True)

    def __enter__(self) -> "Starving":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _starve(self) -> None:
        while not self._has_begun():
            if self._stop.wait(_POLL_SECONDS):
                return
        with held_back(self._cpus):
            for child in psutil.Process().children():
                with suppress(psutil.Error, OSError):
                    _yield_to_others(child)
            self._stop.wait()


def _yield_to_others(process: psutil.Process) -> None:
    """All its threads. k6 is the first of its session, so of a group of its own."""
    if process.name() != "k6":
        return
    niceness = min(os.getpriority(os.PRIO_PROCESS, 0) + _NICE, _NICEST)
    os.setpriority(os.PRIO_PGRP, process.pid, niceness)
    # Where the kernel shares out by sessions, a niceness counts within one only.
    with suppress(OSError):
        Path(f"/proc/{process.pid}/autogroup").write_text(f"{niceness}\n")
