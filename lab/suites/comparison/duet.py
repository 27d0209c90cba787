"""One block of a duet: both variants restarted, then loaded at once at the same rate."""

import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from lab.analysis.counters import Histogram, quantile
from lab.analysis.measure import read_totals
from lab.analysis.prometheus import Prometheus
from lab.errors import Interrupted, LabError
from lab.host.processes import cpu_seconds, tree_bytes
from lab.load.generators import SUMMARY
from lab.load.k6 import k6_env
from lab.load.load import Load
from lab.load.process import Process, execute, has_begun, truncate_log
from lab.load.summary import read_summary
from lab.suites.comparison.stacks import Stack

# Without this much time, connections, pools and caches of a new process would be measured.
_WARM_SECONDS = 4
# A load that has not begun by then never does.
_START_SECONDS = 120
_VUS, _ALONE_SECONDS = 4, 4
# Of the rate that the slower variant answers alone: both together use 60 % of the CPUs.
_SHARE = 0.3
# How many seconds a point of the course has.
POINT_SECONDS = 2


@dataclass(frozen=True)
class Side:
    """What one variant did in a block. Times in ms; `late` responses took longer than the limit."""

    requests: float
    failed: float
    late: float
    cpu_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    memory_bytes: int | None
    histogram: Histogram = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class DuetBlock:
    """Both stacks in one block, and the CPU seconds of each in every `POINT_SECONDS`."""

    sides: tuple[Side, Side]
    points: list[tuple[float, float]]


@dataclass(frozen=True)
class DuetLoad:
    """The load of each stack: `rate` requests per second for `seconds`."""

    scenario: str
    rate: float
    seconds: int
    limit_ms: int


def find_rate(stacks: Sequence[Stack], scenario: str, folder: Path) -> float:
    """Return the rate for each of both: a share of what the slower one answers alone.

    Raises:
        LabError: one answers nothing.
    """
    rates = []
    for stack in stacks:
        load = Load(
            "closed",
            scenario,
            vus=_VUS,
            duration=f"{_ALONE_SECONDS}s",
            testid=f"{folder.name}-alone-{stack.number}",
        )
        _execute([stack], [load], folder / f"alone-{stack.number}", lambda: False)
        summary = read_summary(folder / f"alone-{stack.number}" / "1" / SUMMARY)
        answered = summary.value("http_reqs", "count") - summary.value("http_req_failed", "passes")
        if answered <= 0:
            raise LabError(f"Stack {stack.number} answered no request. See {folder}.")
        rates.append(answered / summary.seconds)
    return _SHARE * min(rates)


def run_block(stacks: tuple[Stack, Stack], load: DuetLoad, folder: Path) -> DuetBlock:
    """Load both stacks at once, and return what each did after the warm-up.

    Raises:
        LabError: a k6 or a stack failed.
        Interrupted: a signal arrived.
    """
    loads = [
        Load(
            "trial",
            load.scenario,
            rate=load.rate,
            duration=f"{_START_SECONDS + load.seconds}s",
            bound_ms=load.limit_ms,
            testid=f"{folder.parent.name}-{folder.name}-{stack.number}",
        )
        for stack in stacks
    ]
    meter = _Meter(stacks, [folder / str(stack.number) / "k6.log" for stack in stacks], load)
    _execute(stacks, loads, folder, meter)
    if not meter.is_complete:
        raise LabError(f"The load ended before the block did. See {folder}.")
    sides = tuple(
        _side(stack, one, folder, meter, position)
        for position, (stack, one) in enumerate(zip(stacks, loads, strict=True))
    )
    return DuetBlock((sides[0], sides[1]), meter.points())


def _execute(
    stacks: Sequence[Stack],
    loads: Sequence[Load],
    folder: Path,
    should_stop: Callable[[], bool],
) -> None:
    logs = list[Path]()
    with ExitStack() as files:
        processes = []
        for number, (stack, load) in enumerate(zip(stacks, loads, strict=True), 1):
            place = folder / str(stack.number if len(stacks) > 1 else number)
            place.mkdir(parents=True, exist_ok=True)
            stack.target.require_ready()
            command = stack.engine.k6(stack.base, k6_env(stack.engine, stack.target, load, place))
            logs.append(place / "k6.log")
            processes.append(Process(command, files.enter_context(logs[-1].open("w"))))
        end = execute(processes, should_stop)
    for log in logs:
        truncate_log(log)
    if end.interrupted:
        raise Interrupted
    if any(end.failed):
        raise LabError(f"k6 failed; see {', '.join(map(str, logs))}.")


@dataclass
class _Meter:
    """Samples the CPU seconds of both stacks each second; returns true at the block's end."""

    stacks: tuple[Stack, Stack]
    logs: list[Path]
    load: DuetLoad
    samples: list[tuple[float, float, float]] = field(default_factory=list)
    memory: list[int | None] = field(default_factory=list)
    _begun: float | None = None

    def __post_init__(self) -> None:
        self._pids = [stack.target_pids() for stack in self.stacks]

    def __call__(self) -> bool:
        now = time.time()
        if self._begun is None:
            self._begun = now if all(map(has_begun, self.logs)) else None
            return False
        if now - self._begun < _WARM_SECONDS:
            return False
        self.samples.append((time.time(), *self._cpu_seconds()))
        if not self.is_complete:
            return False
        self.memory = [
            tree_bytes([pid]) if (pid := stack.server_pid()) else None for stack in self.stacks
        ]
        return True

    def _cpu_seconds(self) -> tuple[float, float]:
        roots = {
            f"{number} {name}": pid
            for number, pids in enumerate(self._pids)
            for name, pid in pids.items()
        }
        used = cpu_seconds(roots)
        first, second = (
            sum(seconds for name, seconds in used.items() if name.startswith(f"{number} "))
            for number in (0, 1)
        )
        return first, second

    @property
    def is_complete(self) -> bool:
        return bool(self.samples) and self.end - self.start >= self.load.seconds

    @property
    def start(self) -> float:
        return self.samples[0][0]

    @property
    def end(self) -> float:
        return self.samples[-1][0]

    def used(self, position: int) -> float:
        """Return the CPU seconds of a stack in the block."""
        return self.samples[-1][1 + position] - self.samples[0][1 + position]

    def points(self) -> list[tuple[float, float]]:
        steps = self.samples[::POINT_SECONDS]
        return [(after[1] - before[1], after[2] - before[2]) for before, after in pairwise(steps)]


def _side(stack: Stack, load: Load, folder: Path, meter: _Meter, position: int) -> Side:
    summary = read_summary(folder / str(stack.number) / SUMMARY)
    if summary.started is None:
        raise LabError(f"k6 sent nothing to stack {stack.number}. See {folder}.")
    seconds = meter.end - summary.started
    totals = read_totals(load.testid, summary.started, seconds, Prometheus(stack.prometheus_url))
    before, after = (totals.at(moment - summary.started) for moment in (meter.start, meter.end))
    requests = after.answers - before.answers
    if requests <= 0:
        raise LabError(f"Stack {stack.number} answered nothing in the block. See {folder}.")
    failed = after.errors - before.errors
    histogram = totals.durations.between(meter.start, meter.end)
    p95, p99 = (1000 * (quantile(histogram, share) or math.nan) for share in (0.95, 0.99))
    return Side(
        requests=requests,
        failed=failed,
        late=max(requests - failed - (after.in_time - before.in_time), 0.0),
        cpu_ms=1000 * meter.used(position) / requests,
        # Exact, from k6's summary; the histogram's buckets are 10 % wide.
        p50_ms=summary.value("http_req_duration", "p(50)"),
        p95_ms=p95,
        p99_ms=p99,
        memory_bytes=meter.memory[position],
        histogram=histogram,
    )
