"""Sample CPU utilization and the backend's memory every second under load."""

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from statistics import fmean

import psutil
from lab_settings.types import cpu_numbers

from load_lab.machine.control_groups import ControlGroups
from load_lab.machine.cpus import choose_cpus
from load_lab.machine.noise import StealMeter, cpu_speed
from load_lab.machine.processes import (
    CpuTimes,
    cpu_seconds,
    generator_pids,
    server_pids,
    tree_bytes,
)
from load_lab.settings import Settings

_STEP_SECONDS = 1.0


@dataclass(frozen=True)
class CpuUse:
    """Utilization (0 to 1) of the target's and the generator's CPUs in the second before `at`.

    `services` has the cores (CPU seconds per second) of each service in that second. `memory_bytes`
    is the memory of the service that answers requests; None where it is not readable. `steal` is
    the share of all CPU time that the hypervisor gave to other guests.

    In cores, on both sides' CPUs: `lab` is what the lab, its k6 and the services on the generator's
    CPUs used, `sharing` what a target without CPUs of its own used, `others` what other programs
    and the kernel used. `taken` is the share of the target's CPUs that those used. `generators`:
    what each k6 used; `throttled`: seconds per second in which a CPU quota stopped them.
    """

    at: float
    target: float
    load: float
    services: dict[str, float] = field(default_factory=dict)
    memory_bytes: int | None = None
    steal: float = 0.0
    lab: float = 0.0
    others: float = 0.0
    sharing: float = 0.0
    taken: float = 0.0
    generators: dict[str, float] = field(default_factory=dict)
    throttled: float = 0.0


# The lab's own process tree, and the prefix of its generators, beside the services.
_LAB, _GENERATOR = "", "k6 "
# Seconds in which the generators start.
_GENERATORS_START = 10
# An app that opens its connections on demand shows its database only under load.
LOOK_AGAIN_SECONDS = (2, 5, 10, 20, 40)


class _ServiceMeter:
    """Cores that each service used since the last call."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        self.pids = {_LAB: os.getpid(), **pids}
        self._at = self._began = time.monotonic()
        self._first = CpuTimes.now()
        self._seconds: dict[str, float] = {}

    def add(self, pids: Mapping[str, int]) -> dict[str, float]:
        """Add services; return the cores that each new one has used on average so far."""
        new = {name: pid for name, pid in pids.items() if name not in self.pids}
        self.pids |= pids
        if not new:
            return {}
        before, now = self._first.of(new), CpuTimes.now().of(new)
        self._seconds |= now
        elapsed = time.monotonic() - self._began
        return {name: max(now[name] - before[name], 0.0) / elapsed for name in new}

    def cores(self) -> dict[str, float]:
        now, seconds = time.monotonic(), cpu_seconds(self.pids)
        elapsed = now - self._at
        # A process that ends between two samples reduces the sum; a new one has no earlier value.
        used = {
            name: max(value - self._seconds.get(name, value), 0) / elapsed
            for name, value in seconds.items()
        }
        self._at, self._seconds = now, seconds
        return used


class QuotaMeter:
    """Seconds per second in which a CPU quota stopped the generators since the last call."""

    def __init__(self, server_pids: Sequence[int]) -> None:
        # A quota that the server has, too, is not the generators'.
        self._pids = {f"server {pid}": pid for pid in server_pids}
        self.watch({})

    def watch(self, generators: Mapping[str, int]) -> None:
        self._pids |= generators
        self._groups = ControlGroups.of(self._pids)
        self._at, self._seconds = time.monotonic(), self._total()

    def throttled(self) -> float:
        before, at = self._seconds, self._at
        self._at, self._seconds = time.monotonic(), self._total()
        return max(self._seconds - before, 0.0) / (self._at - at)

    def _total(self) -> float:
        throttled = self._groups.events().throttled.items()
        return sum(seconds for name, seconds in throttled if name.startswith(_GENERATOR))


class CpuSampler:
    """Sample in a background thread inside a `with` block.

    `pids` has the main process of each service of the stack; `find_target` returns those of a
    target beside it. `generators` k6 processes share the load `testid`.
    """

    def __init__(
        self,
        settings: Settings,
        pids: Mapping[str, int],
        find_target: Callable[[], Mapping[str, int]],
        testid: str = "",
        generators: int = 1,
    ) -> None:
        self._testid = testid
        self._missing_generators = generators
        self._find_target = find_target
        self._target = dict(find_target())
        self._meter = _ServiceMeter({**pids, **self._target})
        self._server_pids = server_pids({**pids, **self._target})
        self._quota = QuotaMeter(self._server_pids)
        cpus = choose_cpus(settings)
        self._sides = (cpu_numbers(cpus.target), cpu_numbers(cpus.load))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self.uses: list[CpuUse] = []
        self._speeds: list[float] = []

    def __enter__(self) -> "CpuSampler":
        self._speeds.append(cpu_speed(self._sides[0]))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        # A short load may end before the next look.
        self._look_for_services()
        self._speeds.append(cpu_speed(self._sides[0]))

    def speed(self) -> float:
        """Return the mean speed of the target's CPUs before and after, see noise.py."""
        return round(fmean(self._speeds), 2)

    def _sample(self) -> None:
        # The first call only sets the baseline, which psutil stores per thread.
        psutil.cpu_percent(percpu=True)
        self._meter.cores()
        steal = StealMeter()
        while not self._stop.wait(_STEP_SECONDS):
            busy = psutil.cpu_percent(percpu=True)
            memory = tree_bytes(self._server_pids)
            self.uses.append(self._use(busy, memory, steal.share()))
            if len(self.uses) in LOOK_AGAIN_SECONDS:
                self._look_for_services()
            if self._missing_generators and len(self.uses) <= _GENERATORS_START:
                self._look_for_generators()

    def _look_for_services(self) -> None:
        """Add services that were found since; they worked before, too."""
        self._target |= self._find_target()
        cores = self._meter.add(self._target)
        if cores:
            self.uses[:] = [replace(use, services=use.services | cores) for use in self.uses]

    def _look_for_generators(self) -> None:
        pids = generator_pids(self._testid)
        known = {f"{_GENERATOR}{name}": pid for name, pid in pids.items()}
        found = len(known.keys() - self._meter.pids.keys())
        if found:
            self._missing_generators -= found
            self._meter.add(known)
            self._quota.watch(known)

    def _use(self, busy: list[float], memory: int | None, steal: float) -> CpuUse:
        """Return a sample; `busy` has the utilization of each CPU in percent."""
        target, load = (sum(busy[i] for i in side) / len(side) / 100 for side in self._sides)
        all_cores = self._meter.cores()
        both = sum(busy[i] for i in {*self._sides[0], *self._sides[1]}) / 100
        others = max(both - sum(all_cores.values()), 0.0)
        on_load = {name: cores for name, cores in all_cores.items() if self._may_run_on_load(name)}
        own = sum(all_cores.values()) - sum(on_load.values())
        sharing = sum(on_load.pop(name, 0.0) for name in self._target)
        del all_cores[_LAB]
        lab = sum(on_load.values())
        generators = {
            name.removeprefix(_GENERATOR): all_cores.pop(name)
            for name in list(all_cores)
            if name.startswith(_GENERATOR)
        }
        return CpuUse(
            time.time(),
            target,
            load,
            all_cores,
            memory,
            steal,
            lab,
            others,
            sharing,
            self._taken(busy, own + sharing, lab),
            generators,
            round(self._quota.throttled(), 3),
        )

    def _taken(self, busy: list[float], own: float, lab: float) -> float:
        """Return the share of the target's CPUs that neither the target nor the lab used."""
        target, load = self._sides
        if not target.isdisjoint(load):
            own += lab
        return max(sum(busy[i] for i in target) / 100 - own, 0.0) / len(target)

    def _may_run_on_load(self, name: str) -> bool:
        # macOS has no CPU affinity.
        with suppress(psutil.Error, AttributeError):
            return not self._sides[1].isdisjoint(
                psutil.Process(self._meter.pids[name]).cpu_affinity()
            )
        return True


def memory_peak(uses: list[CpuUse]) -> int | None:
    """Return the most bytes that the answering service used; None without a sample."""
    return max((use.memory_bytes for use in uses if use.memory_bytes is not None), default=None)


def busy_between(uses: Sequence[CpuUse], start: float, end: float) -> CpuUse | None:
    """Return the mean over a time span; None without a sample in it."""
    span = [use for use in uses if start <= use.at <= end + _STEP_SECONDS]
    if not span:
        return None
    names = {name for use in span for name in use.services}
    return CpuUse(
        end,
        fmean(use.target for use in span),
        fmean(use.load for use in span),
        {name: fmean(use.services.get(name, 0.0) for use in span) for name in sorted(names)},
        steal=fmean(use.steal for use in span),
        lab=fmean(use.lab for use in span),
        others=fmean(use.others for use in span),
        sharing=fmean(use.sharing for use in span),
        taken=fmean(use.taken for use in span),
        throttled=fmean(use.throttled for use in span),
    )
