"""Which CPUs the target has and which the load generator, so that neither steals unseen."""

import os
from dataclasses import dataclass

from lab.errors import UsageError
from lab.settings import Settings


@dataclass(frozen=True)
class Cpus:
    """CPU lists as `taskset -c` takes them, for example 0-2,5."""

    target: str
    load: str

    @property
    def shared(self) -> bool:
        """Whether target and generator compete for a CPU."""
        return bool(expand(self.target) & expand(self.load))


def choose_cpus(settings: Settings) -> Cpus:
    """The CPUs that the settings name; where they name none, half of the machine for each side.

    Raises:
        UsageError: a CPU that this process may not use is named.
    """
    usable = usable_cpus()
    target, load = settings.LAB_TARGET_CPUS, settings.LAB_LOAD_CPUS
    half = (len(usable) + 1) // 2
    target = target or _listed(_without(usable, load) if load else usable[:half])
    load = load or _listed(_without(usable, target))
    for name, chosen in (("LAB_TARGET_CPUS", target), ("LAB_LOAD_CPUS", load)):
        absent = expand(chosen) - set(usable)
        if absent:
            raise UsageError(
                f"{name}={chosen} names CPUs that are not here: {_listed(sorted(absent))}. "
                f"Usable: {_listed(usable)}."
            )
    return Cpus(target, load)


def expand(cpu_list: str) -> set[int]:
    """The CPU numbers of a list: 0-2,5 gives 0, 1, 2 and 5."""
    found: set[int] = set()
    for part in cpu_list.split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def usable_cpus() -> list[int]:
    """Only Linux tells which CPUs a process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def bind(cpus: set[int]) -> None:
    """Keep the calling thread on those CPUs, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cpus)


def _without(usable: list[int], taken: str) -> list[int]:
    """The CPUs that the other side left; all of them when it left none."""
    return [cpu for cpu in usable if cpu not in expand(taken)] or usable


def _listed(numbers: list[int]) -> str:
    return ",".join(map(str, numbers))
