"""CPUs of the target and of the load generator, so that neither takes the other's unnoticed."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from lab_settings.types import cpu_numbers

from load_lab.errors import UsageError
from load_lab.settings import Settings

# The kernel keeps the highest latency that a program has written here, in µs as 4 bytes, for as
# long as it has the file open.
_WAKE_LATENCY = Path("/dev/cpu_dma_latency")


@dataclass(frozen=True)
class Cpus:
    """CPU lists in the format of `taskset -c`, for example 0-2,5."""

    target: str
    load: str

    @property
    def shared(self) -> bool:
        """Return whether target and generator compete for a CPU."""
        return bool(cpu_numbers(self.target) & cpu_numbers(self.load))


def choose_cpus(settings: Settings) -> Cpus:
    """Return the CPUs from the settings; default: half of the machine for each side.

    Raises:
        UsageError: a setting names a CPU that this process may not use.
    """
    usable = usable_cpus()
    target, load = settings.LAB_TARGET_CPUS, settings.LAB_LOAD_CPUS
    half = (len(usable) + 1) // 2
    target = target or _cpu_list(_without(usable, load) if load else usable[:half])
    load = load or _cpu_list(_without(usable, target))
    for name, cpus in (("LAB_TARGET_CPUS", target), ("LAB_LOAD_CPUS", load)):
        missing = cpu_numbers(cpus) - set(usable)
        if missing:
            raise UsageError(
                f"{name}={cpus} names CPUs that are not here: {_cpu_list(sorted(missing))}. "
                f"Usable: {_cpu_list(usable)}."
            )
    return Cpus(target, load)


def pinned(settings: Settings) -> Settings:
    """Return the settings with the chosen CPUs, as a running stack has them."""
    cpus = choose_cpus(settings)
    return settings.model_copy(update={"LAB_TARGET_CPUS": cpus.target, "LAB_LOAD_CPUS": cpus.load})


def usable_cpus() -> list[int]:
    """Return the CPUs that this process may use; only Linux reports them, elsewhere all CPUs."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def bind(cpus: set[int]) -> None:
    """Pin the calling thread to those CPUs, where the system supports it."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cpus)


@contextmanager
def awake() -> Iterator[None]:
    """Keep CPUs without work from sleeping for the block, where this user may ask for that."""
    with ExitStack() as stack:
        with suppress(OSError):
            file = stack.enter_context(_WAKE_LATENCY.open("wb", buffering=0))
            file.write(bytes(4))
        yield


def _without(usable: list[int], other: str) -> list[int]:
    """Return the CPUs that the other side does not use; all CPUs when it uses all."""
    return [cpu for cpu in usable if cpu not in cpu_numbers(other)] or usable


def _cpu_list(numbers: list[int]) -> str:
    return ",".join(map(str, numbers))
