"""What else the machine did meanwhile: a figure that was measured in noise says little."""

import time
from dataclasses import dataclass
from resource import RUSAGE_CHILDREN, getrusage

import psutil

from lab.host.noise import NOISY_SHARE, UNSTEADY_RATIO, extremes
from lab.host.processes import cpu_seconds

# From here on other programs take what the load or its target would have had.
_FOREIGN_SHARE = 0.1
# As much of the machine as a p99 leaves out: its times may all be from when k6 had no CPU.
_TAIL_SHARE = 0.01


@dataclass(frozen=True)
class Noise:
    """Shares (0 to 1) of all CPU time: what the hypervisor gave to others, and what programs used
    that are neither the stack's nor ours. `load_steal` is the hypervisor's share of the time of the
    generator's CPUs alone. `cpu_speed`: see lab/host/noise.py.
    """

    steal: float
    foreign: float
    cpu_speed: float | None
    load_steal: float = 0.0

    @property
    def taken(self) -> float:
        """What the stack and the lab lacked, or k6 alone, where that is more: 0 to 1."""
        return max(self.steal + self.foreign, self.load_steal)

    @property
    def in_times(self) -> str:
        """Why a percentile says nothing; empty where it does."""
        if self.taken < _TAIL_SHARE:
            return ""
        if self.taken == self.load_steal:
            return f"the hypervisor took {self.taken:.1%} of the generator's CPU time"
        return f"{self.taken:.1%} of the CPU time was taken, by the hypervisor or other programs"

    @property
    def reasons(self) -> list[str]:
        """What was too loud."""
        found = []
        if self.steal >= NOISY_SHARE:
            found.append(f"the hypervisor took {self.steal:.0%} of the CPU time")
        if self.foreign >= _FOREIGN_SHARE:
            found.append(f"other programs used {self.foreign:.0%} of the CPU time")
        return found


class ForeignMeter:
    """The share of all CPU time, since it was made, that went to other programs.

    `pids` are at the top of the processes that are ours; programs that we start and wait for, as
    k6, are ours anyway.
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
        """CPU seconds of every program, and of ours."""
        all_of_them = psutil.cpu_times()
        children = getrusage(RUSAGE_CHILDREN)
        ended = children.ru_utime + children.ru_stime
        ours = sum(cpu_seconds(self._pids).values()) + ended + time.process_time()
        return all_of_them.user + all_of_them.nice + all_of_them.system, ours


def unsteady(noises: list[tuple[str, Noise]]) -> list[str]:
    """A line for each run that was noisy, and one where the machine's speed varied."""
    found = [f"{name}: {reason}" for name, noise in noises for reason in noise.reasons]
    speeds = extremes((noise.cpu_speed, name) for name, noise in noises)
    if speeds and speeds.ratio >= UNSTEADY_RATIO:
        found.append(
            f"the CPUs were {speeds.ratio:.2f} times as fast in {speeds.fastest} as in "
            f"{speeds.slowest}"
        )
    return found
