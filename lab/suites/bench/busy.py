"""Who was at the limit while something was measured: the generator, or the target."""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import psutil

from lab.host.cpus import Cpus, expand

# From this share on a side is taken for full: what is left goes to switching and waiting.
FULL = 0.9

# Until we are gone, whatever has become of us.
_COMPUTE = "import os; us = os.getppid()\nwhile os.getppid() == us: pass"


@dataclass(frozen=True)
class Busy:
    """Busy shares (0 to 1) of the generator and of the target's CPUs over a measurement.

    The generator's is that of its CPUs or of its own threads, whichever is more: a generator of one
    thread is full when that is, however many CPUs it may use.
    """

    generator: float
    target: float
    # Whether something else took a part of the target's CPUs, which are full then in any case.
    held_back: bool = False

    @property
    def void(self) -> bool:
        """Whether the generator gave way before the target: the figure is then the generator's."""
        return self.generator >= FULL and (self.held_back or self.target < FULL)

    def __str__(self) -> str:
        return f"generator {self.generator:.0%} busy, target {self.target:.0%}"


@contextmanager
def held_back(cpus: str) -> Iterator[None]:
    """On each of these CPUs a program that computes and never waits: others get half of it."""
    with ExitStack() as running:
        for cpu in sorted(expand(cpus)):
            # A session of its own: the terminal's Ctrl-C is for us.
            argv = ["taskset", "-c", str(cpu), sys.executable, "-c", _COMPUTE]
            program = subprocess.Popen(argv, start_new_session=True)
            running.callback(_end, program)
        yield


def _end(program: "subprocess.Popen[bytes]") -> None:
    program.kill()
    program.wait()


class BusyMeter:
    """Looks at the CPUs when it is made, and again when it is asked."""

    def __init__(self, cpus: Cpus) -> None:
        self._sides = (sorted(expand(cpus.load)), sorted(expand(cpus.target)))
        self._began = time.monotonic()
        self._times = psutil.cpu_times(percpu=True)

    def busy(self, generator_seconds: float, threads: int) -> Busy:
        """The shares since then. `generator_seconds` is the CPU time of the generator itself."""
        passed = time.monotonic() - self._began
        now = psutil.cpu_times(percpu=True)
        load, target = (_share(self._times, now, side) for side in self._sides)
        return Busy(min(max(load, generator_seconds / passed / threads), 1.0), target)


def _share(before: Sequence[Any], after: Sequence[Any], side: list[int]) -> float:
    """The share of their time in which the CPUs of `side` were not idle.

    What the hypervisor took counts as busy: the CPU had work and could not do more of it.
    """
    idle = sum(_idle(after[cpu]) - _idle(before[cpu]) for cpu in side)
    total = sum(_total(after[cpu]) - _total(before[cpu]) for cpu in side)
    return max(1 - idle / total, 0.0) if total > 0 else 0.0


def _idle(times: Any) -> float:
    """Waiting for a disk is idle, too; other systems than Linux don't tell."""
    return float(times.idle) + float(getattr(times, "iowait", 0.0))


def _total(times: Any) -> float:
    # A guest's own guests are counted in user and nice already.
    fields = times._asdict()
    return float(sum(value for name, value in fields.items() if not name.startswith("guest")))
