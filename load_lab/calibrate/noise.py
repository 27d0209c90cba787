"""Noise of the machine during a run: a value that was measured in noise is not reliable."""

import time
from dataclasses import dataclass
from resource import RUSAGE_CHILDREN, getrusage

import psutil

from load_lab.machine.noise import NOISY_SHARE, UNSTEADY_RATIO, extremes
from load_lab.machine.processes import cpu_seconds

# From this share on, other programs use CPU time that the load or its target needs.
_FOREIGN_SHARE = 0.1
# The share that a p99 leaves out: its times may all be from moments when k6 had no CPU.
_TAIL_SHARE = 0.01


@dataclass(frozen=True)
class Noise:
    """Shares (0 to 1) of all CPU time: `steal`, taken by the hypervisor, and `foreign`, used by
    programs of neither the stack nor the lab. `load_steal` is the hypervisor's share of the time of
    the generator's CPUs only. `cpu_speed`: see load_lab/machine/noise.py.
    """

    steal: float
    foreign: float
    cpu_speed: float | None
    load_steal: float = 0.0

    @property
    def lost_share(self) -> float:
        """Return the share (0 to 1) that the stack and the lab lacked, or k6 if that is more."""
        return max(self.steal + self.foreign, self.load_steal)

    @property
    def void_reason(self) -> str:
        """Return why a percentile is not valid; empty if it is."""
        if self.lost_share < _TAIL_SHARE:
            return ""
        if self.lost_share == self.load_steal:
            return f"the hypervisor took {self.lost_share:.1%} of the generator's CPU time"
        return (
            f"{self.lost_share:.1%} of the CPU time was taken, by the hypervisor or other programs"
        )

    @property
    def reasons(self) -> list[str]:
        """Return the noise that was too high."""
        reasons = []
        if self.steal >= NOISY_SHARE:
            reasons.append(f"the hypervisor took {self.steal:.0%} of the CPU time")
        if self.foreign >= _FOREIGN_SHARE:
            reasons.append(f"other programs used {self.foreign:.0%} of the CPU time")
        return reasons


class ForeignMeter:
    """The share of all CPU time that other programs used since its creation.

    `pids` are the root processes of the stack; child processes of the lab, such as k6, never
    count as other programs.
    """

    def __init__(self, pids: dict[str, int]) -> None:
        self._pids = pids
        self._before = self._read_cpu_seconds()
        self._start = time.monotonic()

    def share(self) -> float:
        now, elapsed = self._read_cpu_seconds(), time.monotonic() - self._start
        total, own = (after - before for after, before in zip(now, self._before, strict=True))
        return max(total - own, 0.0) / (elapsed * (psutil.cpu_count() or 1))

    def _read_cpu_seconds(self) -> tuple[float, float]:
        """Return the CPU seconds of all programs, and of the stack and the lab."""
        total = psutil.cpu_times()
        children = getrusage(RUSAGE_CHILDREN)
        ended = children.ru_utime + children.ru_stime
        own = sum(cpu_seconds(self._pids).values()) + ended + time.process_time()
        return total.user + total.nice + total.system, own


def unsteady(noises: list[tuple[str, Noise]]) -> list[str]:
    """Return a line for each noisy run, and one if the machine's speed varied."""
    warnings = [f"{name}: {reason}" for name, noise in noises for reason in noise.reasons]
    speeds = extremes((noise.cpu_speed, name) for name, noise in noises)
    if speeds and speeds.ratio >= UNSTEADY_RATIO:
        warnings.append(
            f"the CPUs were {speeds.ratio:.2f} times as fast in {speeds.fastest} as in "
            f"{speeds.slowest}"
        )
    return warnings
