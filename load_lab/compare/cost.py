"""What one variant, or two at once, cost under a load: CPU time, response times, memory."""

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from lab_settings.types import cpu_numbers

from load_lab.errors import Interrupted, LabError
from load_lab.load.generators import SUMMARY
from load_lab.load.k6 import k6_env
from load_lab.load.load import Load
from load_lab.load.page_change import require_same_pages
from load_lab.load.page_watch import PageWatch, pages_of
from load_lab.load.process import Process, execute, has_begun, truncate_log
from load_lab.load.summary import Summary, read_summary
from load_lab.machine.cpus import bind, choose_cpus
from load_lab.machine.processes import CpuTimes, server_pids, tree_bytes
from load_lab.metrics.counters import Histogram, quantile
from load_lab.metrics.prometheus import Prometheus
from load_lab.run.measurement import read_totals
from load_lab.targets.statements import Statements, own_times
from load_lab.targets.subject import Running

# Without this much time, connections, pools and caches of a new process would be measured.
_WARM_SECONDS = 4
# A load that has not begun by then never does.
_START_SECONDS = 120
_VUS, _ALONE_SECONDS = 4, 4
# In each second of a warm-up, until a database is known.
_LOOK_SECONDS = 0.4


@dataclass(frozen=True)
class Side:
    """What one variant did in a block. Times in ms; `late` responses took longer than the limit,
    the median is that of the whole load. `services`: the CPU time of each, if which there are was
    only seen by their connections. `shared`: the CPU time of those that serve both variants, per
    request of both; it is in no other value. `statements_ms`: the time of its statements there per
    request, None if not known.
    """

    requests: float
    failed: float
    late: float
    cpu_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    memory_bytes: int | None
    histogram: Histogram = field(default_factory=dict, repr=False)
    services: Mapping[str, float] = field(default_factory=dict)
    shared: Mapping[str, float] = field(default_factory=dict)
    statements_ms: float | None = None

    def counting(self, names: Collection[str]) -> "Side":
        """Return the side with the CPU time of these services only."""
        if not self.services:
            return self
        return replace(self, cpu_ms=sum(ms for name, ms in self.services.items() if name in names))


@dataclass(frozen=True)
class Order:
    """The roles in a block: `swapped` if A is in the second stack, `b_first` if B is restarted
    first: what is restarted last is the coldest.
    """

    swapped: bool
    b_first: bool

    @classmethod
    def of_block(cls, number: int) -> "Order":
        """Return the order of a block, from 1 on: each of both roles changes as often as possible
        without the other.
        """
        return cls(swapped=number % 2 == 0, b_first=number % 4 in (2, 3))


@dataclass(frozen=True)
class BlockLoad:
    """The load of each variant: `rate` requests per second for `seconds`; None as `scenario` is a
    target's mix.
    """

    scenario: str | None
    rate: float
    seconds: int
    limit_ms: int


def rate_alone(party: Running, scenario: str | None, folder: Path) -> float:
    """Return the successful responses per second without pauses.

    Raises:
        LabError: there is none.
    """
    load = Load("closed", scenario, vus=_VUS, duration=f"{_ALONE_SECONDS}s", testid=_testid(folder))
    _execute([party], [load], [folder], lambda: _look(party))
    summary = read_summary(folder / SUMMARY)
    if not summary.good:
        raise LabError(f"{party.target.description} answered no request. See {folder}.")
    return summary.good / summary.seconds


def _look(party: Running) -> bool:
    """Look for services, and let the load go on."""
    if party.look:
        party.look(_LOOK_SECONDS)
    return False


def measure(parties: Sequence[Running], load: BlockLoad, folders: Sequence[Path]) -> list[Side]:
    """Load all parties at once, and return what each did after the warm-up.

    Raises:
        LabError: a k6 or a target failed.
        Interrupted: a signal arrived.
    """
    loads = [
        Load(
            "trial",
            load.scenario,
            rate=load.rate,
            duration=f"{_START_SECONDS + load.seconds}s",
            bound_ms=load.limit_ms,
            testid=_testid(folder),
        )
        for folder in folders
    ]
    meter = _Meter(parties, [folder / "k6.log" for folder in folders], load.seconds)
    _execute(parties, loads, folders, meter)
    if not meter.is_complete:
        raise LabError(f"The load ended before the block did. See {folders[0].parent}.")
    sides = [
        _side(party, one, folder, meter, position)
        for position, (party, one, folder) in enumerate(zip(parties, loads, folders, strict=True))
    ]
    return _with_shared(sides, meter)


def _with_shared(sides: Sequence[Side], meter: "_Meter") -> list[Side]:
    """Return the sides with what the services cost that serve both variants."""
    requests = sum(side.requests for side in sides)
    shared = {name: 1000 * used / requests for name, used in meter.shared_cpu.items()}
    if not shared:
        return list(sides)
    times = own_times(meter.statements)
    return [
        replace(side, shared=shared, statements_ms=ms / side.requests if ms is not None else None)
        for side, ms in zip(sides, times, strict=True)
    ]


def _testid(folder: Path) -> str:
    """Return the name of a load whose files are in results/COMPARISON/BLOCK/VARIANT."""
    return "-".join(folder.parts[-3:])


def _execute(
    parties: Sequence[Running],
    loads: Sequence[Load],
    folders: Sequence[Path],
    should_stop: Callable[[], bool],
) -> None:
    logs = [folder / "k6.log" for folder in folders]
    with ExitStack() as files:
        processes, watches = list[Process](), list[PageWatch]()
        for party, load, folder in zip(parties, loads, folders, strict=True):
            folder.mkdir(parents=True, exist_ok=True)
            party.target.require_ready()
            env = k6_env(party.engine, party.target, load, folder)
            url = party.settings.prometheus_url
            watches.append(PageWatch(load.testid, url, pages_of(env)))
            log = files.enter_context((folder / "k6.log").open("w"))
            processes.append(Process(party.engine.k6(party.settings, env), log))
        end = execute(processes, lambda: any(each() for each in watches) or should_stop())
    for log_path in logs:
        truncate_log(log_path)
    if end.interrupted:
        raise Interrupted
    if any(end.failed):
        raise LabError(f"k6 failed; see {', '.join(map(str, logs))}.")
    for watch in watches:
        require_same_pages(watch.testid, watch.change)


@dataclass
class _Meter:
    """Samples the CPU seconds of all parties each second; returns true at the block's end."""

    parties: Sequence[Running]
    logs: list[Path]
    seconds: int
    times: list[float] = field(default_factory=list)
    cpu_times: list[CpuTimes] = field(default_factory=list)
    memory: list[int | None] = field(default_factory=list)
    pids: list[dict[str, int]] = field(default_factory=list)
    # Of each variant, at the block's begin and end.
    statements: list[list[Statements | None]] = field(default_factory=list)
    _begun: float | None = None

    def __post_init__(self) -> None:
        # The lab computes too, and the target's CPUs are what is compared. Only this thread is
        # pinned: programs that the lab starts would inherit it.
        load = cpu_numbers(choose_cpus(self.parties[0].settings).load)
        self._pool = ThreadPoolExecutor(1, initializer=bind, initargs=(load,))

    def __call__(self) -> bool:
        now = time.time()
        if self._begun is None:
            self._begun = now if all(map(has_begun, self.logs)) else None
            return False
        if now - self._begun < _WARM_SECONDS:
            self._pool.submit(lambda: [_look(party) for party in self.parties]).result()
            return False
        self._pool.submit(self._sample).result()
        return self.is_complete

    def _sample(self) -> None:
        self.pids = self.pids or self._find_pids()
        self.times.append(time.time())
        if len(self.times) == 1 or self.is_complete:
            self.cpu_times.append(CpuTimes.now())
            self.statements.append([party.read_statements() for party in self.parties])
        if self.is_complete:
            found = self._find_pids()
            self._require_same(found)
            # What was found only now worked from the beginning on.
            self.pids = found
            self.memory = [tree_bytes(server_pids(pids)) for pids in self.pids]

    def _find_pids(self) -> list[dict[str, int]]:
        return [dict(party.find_pids()) for party in self.parties]

    def _require_same(self, pids: list[dict[str, int]]) -> None:
        """Check that no process was replaced: the CPU time of the old one is lost.

        Raises:
            LabError: one was.
        """
        for before, after, party in zip(self.pids, pids, self.parties, strict=True):
            changed = [name for name, pid in before.items() if after.get(name) != pid]
            if changed or not before:
                raise LabError(
                    f"{party.target.description}: {', '.join(changed) or 'the target'} ended or "
                    "was restarted during the load, so its CPU time is not known. See its log."
                )

    @property
    def is_complete(self) -> bool:
        return bool(self.times) and self.times[-1] - self.times[0] >= self.seconds

    @property
    def _shared(self) -> set[int]:
        """Return the processes that serve both variants, not one alone."""
        each = [set(pids.values()) for pids in self.pids]
        return set.intersection(*each) if len(each) > 1 else set()

    @property
    def shared_cpu(self) -> dict[str, float]:
        """Return the CPU seconds of the services that serve both variants."""
        return self._cpu({n: pid for n, pid in self.pids[0].items() if pid in self._shared})

    def cpu(self, position: int) -> dict[str, float]:
        """Return the CPU seconds of the services that serve one variant alone."""
        pids = self.pids[position].items()
        return self._cpu({name: pid for name, pid in pids if pid not in self._shared})

    def _cpu(self, pids: Mapping[str, int]) -> dict[str, float]:
        before, after = (times.of(pids) for times in self.cpu_times)
        return {name: after[name] - before[name] for name in after}


def _side(party: Running, load: Load, folder: Path, meter: _Meter, position: int) -> Side:
    summary = read_summary(folder / SUMMARY)
    if summary.started is None:
        raise LabError(f"k6 sent nothing. See {folder}.")
    start, end = meter.times[0], meter.times[-1]
    prometheus = Prometheus(party.settings.prometheus_url)
    totals = read_totals(load.testid, summary.started, end - summary.started, prometheus)
    before, after = (totals.at(moment - summary.started) for moment in (start, end))
    requests, failed = after.answers - before.answers, after.errors - before.errors
    if requests <= 0:
        raise LabError(f"There was no response in the block. See {folder}.")
    histogram = totals.durations.between(start, end)
    services = {name: 1000 * used / requests for name, used in meter.cpu(position).items()}
    return Side(
        requests=requests,
        failed=failed,
        late=max(requests - failed - (after.in_time - before.in_time), 0.0),
        cpu_ms=sum(services.values()),
        p50_ms=_median_ms(summary),
        p95_ms=_milliseconds(histogram, 0.95),
        p99_ms=_milliseconds(histogram, 0.99),
        memory_bytes=meter.memory[position],
        histogram=histogram,
        services=services if party.look else {},
    )


def _median_ms(summary: Summary) -> float:
    """Return the exact median of the whole load; a histogram's buckets are 10 % wide."""
    return summary.value("http_req_duration", "p(50)")


def _milliseconds(histogram: Histogram, share: float) -> float:
    return 1000 * (quantile(histogram, share) or math.nan)
