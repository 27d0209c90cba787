"""CPU time that the hypervisor gave to others while something here wanted it."""

from collections.abc import Collection, Iterable
from typing import Any

import psutil

# From here on a figure says much about the machine's neighbours.
NOISY_SHARE = 0.05


class StealMeter:
    """The share (0 to 1) of all CPU time, or of that of some `cpus`, that was stolen since it was
    last asked.

    Of Linux guests; elsewhere 0. The kernel counts a CPU's time as stolen only while it had work.
    """

    def __init__(self, cpus: Collection[int] | None = None) -> None:
        self._cpus = cpus
        self._before = _times(cpus)

    def share(self) -> float:
        before, self._before = self._before, _times(self._cpus)
        stolen, passed = (now - then for now, then in zip(self._before, before, strict=True))
        return stolen / passed if passed > 0 else 0.0


def mean_share(shares: Iterable[float]) -> float:
    """The mean of a run's seconds; 0 for none."""
    known = list(shares)
    return round(sum(known) / len(known), 4) if known else 0.0


def _times(cpus: Collection[int] | None) -> tuple[float, float]:
    """Stolen and all seconds of those CPUs so far."""
    if cpus is None:
        return _counted(psutil.cpu_times())
    each = psutil.cpu_times(percpu=True)
    stolen, passed = zip(*(_counted(each[cpu]) for cpu in cpus), strict=True)
    return sum(stolen), sum(passed)


def _counted(found: Any) -> tuple[float, float]:
    # A guest's own guests are counted in user and nice already.
    counted = [value for name, value in found._asdict().items() if not name.startswith("guest")]
    return getattr(found, "steal", 0.0), sum(counted)
