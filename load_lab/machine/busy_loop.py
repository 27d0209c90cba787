"""CPU use of the generator and of the target during a measurement."""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import psutil
from lab_settings.types import cpu_numbers

from load_lab.machine.cpus import Cpus

# A side counts as full from this share on: the rest is lost to switching and waiting.
FULL = 0.9

# Runs until the parent process has ended, for any reason.
_COMPUTE = "import os; us = os.getppid()\nwhile os.getppid() == us: pass"


@dataclass(frozen=True)
class Busy:
    """Busy shares (0 to 1) of the generator and of the target's CPUs over a measurement.

    The generator's share is that of its CPUs or of its own threads, whichever is higher: a
    generator with one thread is full when that thread is, however many CPUs it may use.
    """

    generator: float
    target: float
    # Whether another program used part of the target's CPUs, which are then always full.
    held_back: bool = False

    @property
    def void(self) -> bool:
        """Return whether the generator was the limit: the result is then the generator's."""
        return self.generator >= FULL and (self.held_back or self.target < FULL)

    def __str__(self) -> str:
        return f"generator {self.generator:.0%} busy, target {self.target:.0%}"


@contextmanager
def busy_loops(cpus: str) -> Iterator[None]:
    """Run a busy loop on each of these CPUs, which leaves half of them to other programs."""
    with ExitStack() as stack:
        for cpu in sorted(cpu_numbers(cpus)):
            # In a new session: the terminal's Ctrl-C is for the lab.
            argv = ["taskset", "-c", str(cpu), sys.executable, "-c", _COMPUTE]
            program = subprocess.Popen(argv, start_new_session=True)
            stack.callback(_end, program)
        yield


def _end(program: "subprocess.Popen[bytes]") -> None:
    program.kill()
    program.wait()


class BusyMeter:
    """Reads the CPU times when it is created, and again on each call of `busy`."""

    def __init__(self, cpus: Cpus) -> None:
        self._sides = (sorted(cpu_numbers(cpus.load)), sorted(cpu_numbers(cpus.target)))
        self._start = time.monotonic()
        self._times = psutil.cpu_times(percpu=True)

    def busy(self, generator_seconds: float, threads: int) -> Busy:
        """Return the shares since then. `generator_seconds` is the generator's own CPU time."""
        elapsed = time.monotonic() - self._start
        now = psutil.cpu_times(percpu=True)
        load, target = (_share(self._times, now, side) for side in self._sides)
        return Busy(min(max(load, generator_seconds / elapsed / threads), 1.0), target)


def _share(before: Sequence[Any], after: Sequence[Any], side: list[int]) -> float:
    """Return the share of their time in which the CPUs of `side` were not idle.

    Time taken by the hypervisor counts as busy: the CPU had work and could not do more of it.
    """
    idle = sum(_idle(after[cpu]) - _idle(before[cpu]) for cpu in side)
    total = sum(_total(after[cpu]) - _total(before[cpu]) for cpu in side)
    return max(1 - idle / total, 0.0) if total > 0 else 0.0


def _idle(times: Any) -> float:
    """Return the idle time, including waits for a disk; only Linux reports those."""
    return float(times.idle) + float(getattr(times, "iowait", 0.0))


def _total(times: Any) -> float:
    # The time of guests is already included in user and nice.
    fields = times._asdict()
    return float(sum(value for name, value in fields.items() if not name.startswith("guest")))
