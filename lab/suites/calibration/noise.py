"""Noise of the machine during a run: a value that was measured in noise is not reliable."""

import time
from dataclasses import dataclass
from resource import RUSAGE_CHILDREN, getrusage

import psutil

from lab.host.noise import NOISY_SHARE, UNSTEADY_RATIO, extremes
from lab.host.processes import cpu_seconds

# From this share on, other programs use CPU time that the load or its target needs.
_FOREIGN_SHARE = 0.1
# The share that a p99 leaves out: its times may all be from moments when k6 had no CPU.
_TAIL_SHARE = 0.01


@dataclass(frozen=True)
class Noise:
    """Shares (0 to 1) of all CPU time: `steal`, taken by the hypervisor, and `foreign`, used by
    programs of neither the stack nor the lab. `load_steal` is the hypervisor's share of the time of
    the generator's CPUs only. `cpu_speed`: see lab/host/noise.py.
    """

    steal: float
    foreign: float
    cpu_speed: float | None
    load_steal: float = 0.0

    @property
    def taken(self) -> float:
        """Return the share (0 to 1) that the stack and the lab lacked, or k6 if that is more."""
        return max(self.steal + self.foreign, self.load_steal)

    @property
    def in_times(self) -> str:
        """Return why a percentile is not valid; empty if it is."""
        if self.taken < _TAIL_SHARE:
            return ""
        if self.taken == self.load_steal:
            return f"the hypervisor took {self.taken:.1%} of the generator's CPU time"
        return f"{self.taken:.1%} of the CPU time was taken, by the hypervisor or other programs"

    @property
    def reasons(self) -> list[str]:
        """Return the noise that was too high."""
        found = []
        if self.steal >= NOISY_SHARE:
            found.append(f"the hypervisor took {self.steal:.0%} of the CPU time")
        if self.foreign >= _FOREIGN_SHARE:
            found.append(f"other programs used {self.foreign:.0%} of the CPU time")
        return found


class ForeignMeter:
    """The share of all CPU time that other programs used since its creation.

    `pids` are the root processes of the stack; child processes of the lab, such as k6, never
    count as other programs.
    """

    def __init__(self, pids: dict[str, int]) -> None:
        self._pids = pids
        self._before = self._look()
        self._began = time.monotonic()

    def share(self) -> float:
        now, passed = self._look(), time.monotonic() - self._began
        used, ours = (after - before for after, before in zip(now, self._before, strict=True))
        return max(used - ours, 0.0) / (passed * (psutil.cpu_count() or 1))

    def _look(self) -> tuple[float, float]:
        """Return the CPU seconds of all programs, and of the stack and the lab."""
        all_of_them = psutil.cpu_times()
        children = getrusage(RUSAGE_CHILDREN)
        ended = children.ru_utime + children.ru_stime
        ours = sum(cpu_seconds(self._pids).values()) + ended + time.process_time()
        return all_of_them.user + all_of_them.nice + all_of_them.system, ours


def unsteady(noises: list[tuple[str, Noise]]) -> list[str]:
    """Return a line for each noisy run, and one if the machine's speed varied."""
    found = [f"{name}: {reason}" for name, noise in noises for reason in noise.reasons]
    speeds = extremes((noise.cpu_speed, name) for name, noise in noises)
    if speeds and speeds.ratio >= UNSTEADY_RATIO:
        found.append(
            f"the CPUs were {speeds.ratio:.2f} times as fast in {speeds.fastest} as in "
            f"{speeds.slowest}"
        )
    return found
