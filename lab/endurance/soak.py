"""Half of what it bears for a long time: does anything grow that should not?"""

import re
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from lab import durations
from lab.borrowed import borrowed, prepare
from lab.breakpoint import Bounds
from lab.endurance import breaking_rate
from lab.endurance.breaking_rate import Limit, find_borne
from lab.endurance.course import by_status, course
from lab.endurance.figures import Figure, at_most
from lab.endurance.memory import peaks, within_limits
from lab.endurance.watch import Look, Watch
from lab.engine import Engine
from lab.errors import UsageError
from lab.k6 import Load, new_testid
from lab.machine import facts, stored
from lab.measure import measure
from lab.paths import current_state
from lab.progress import Progress
from lab.prometheus import Prometheus

SHARE = 0.5
LEAST_SECONDS = 60
LOOKS = 120
_MIB = 1024**2
# Caches fill and pools open in the first sixth; what the second has is compared with the last.
_PARTS = 6

# Of the requests, with 503.
REFUSED_SHARE, _REFUSED = 0.001, "503"
# What may grow, and by how much. A worker's memory moves by some MiB with what it last answered.
WORKER_BYTES, WORKER_SHARE = 8 * _MIB, 0.05
CONNECTIONS, FILES = 2, 20
# Both caches of `protected` with their scratch files: max_size in nginx/templates/switches.
CACHE_BYTES = (1024 + 256 + 64) * _MIB
# max_wal_size in postgres/postgresql.conf, which Postgres may pass by a quarter under load.
LOG_AHEAD_BYTES = 5 * 1024 * _MIB
# Measured: 0.9 KB for a booking with its guests, key, answer and indexes; tables grow in steps.
BYTES_PER_BOOKING, TABLE_BYTES = 2048, 32 * _MIB
# A line of Nginx' access log; `lab k6` cuts it off before each test. Others are cut at 20 MB.
BYTES_PER_REQUEST, LOG_BYTES = 400, 100 * _MIB
METRICS_BYTES, METRICS_BYTES_PER_HOUR = 100 * _MIB, 1024 * _MIB


@dataclass(frozen=True)
class Asked:
    """What to hold: `rate` requests/s of the scenario, or half of what is borne."""

    scenario: str
    seconds: float
    rate: int | None = None


def asked(scenario: str, duration: str, rate: int | None) -> Asked:
    """Raises:
    UsageError: the duration is none, or too short to tell growth from a start.
    """
    if not re.match(durations.PATTERN, duration):
        raise UsageError(f"--duration {duration} is none. Write it like 180s, 3m or 1h.")
    seconds = durations.seconds(duration)
    if seconds < LEAST_SECONDS:
        raise UsageError(
            f"--duration {duration} is too short: caches fill and pools open in the first part of "
            f"it. Give it {LEAST_SECONDS}s or more."
        )
    return Asked(scenario, seconds, rate)


def run(engine: Engine, what: Asked) -> dict[str, Any]:
    """Hold the rate, look at what grows, and store the document.

    Raises:
        UsageError: this engine can't.
        LabError: the stack broke, or bears nothing.
        Interrupted: someone pressed Ctrl-C.
    """
    if engine.name != "native":
        raise UsageError(
            f"`lab soak` looks into the native engine's folders and processes; this one is "
            f"{engine.name}. Stop this stack (lab down), then: LAB_ENGINE=native lab soak"
        )
    expected = breaking_rate.SECONDS + what.seconds + 90
    with borrowed(engine, as_set=True) as stack, Progress(expected) as progress:
        prepare(engine, stack)
        with facts(engine, stack.base) as known:
            limit = _limit(engine, what, progress)
            held = what.rate or max(1, round(SHARE * limit.rate)) if limit else what.rate or 1
            progress.begin(f"{held} requests/s for {what.seconds:.0f} s", what.seconds + 30)
            found = _held(engine, what, held, Prometheus(stack.base.prometheus_url))
    named = {"scenario": what.scenario, "seconds": what.seconds, "rate": held}
    settings = {"settings": stack.base.model_dump(), "limit": asdict(limit) if limit else None}
    return stored("soak", {**known, **named, **settings, **found})


def _limit(engine: Engine, what: Asked, progress: Progress) -> Limit | None:
    """What the stack bears, unless the rate was given. It need not be the limit itself: half of
    what the generator can ask for is a load, too.
    """
    if what.rate is not None:
        return None
    progress.begin("break point", breaking_rate.SECONDS + 60)
    return find_borne(engine, what.scenario)


def _held(engine: Engine, what: Asked, rate: int, prometheus: Prometheus) -> dict[str, Any]:
    """The load with all that was looked at meanwhile."""
    testid, duration = new_testid("soak"), f"{what.seconds:g}s"
    load = Load("hold", what.scenario, rate=rate, duration=duration, testid=testid)
    step = max(1.0, what.seconds / LOOKS)
    began = time.time()
    with Watch(engine, current_state(), step) as watch:
        result = measure(engine, load, Bounds()).document
    memory = peaks(prometheus, began, time.time(), step=max(5.0, step))
    plan, started = course(result)
    statuses = by_status(prometheus, testid, started, plan.seconds)
    figures = [
        *of_load(result, statuses.get(_REFUSED, 0)),
        *of_processes(watch.looks),
        *of_disk(watch.looks, watch.bookings, result["requests"], what.seconds),
        *within_limits(memory),
    ]
    return {
        "result": {name: result[name] for name in _TOLD},
        "statuses": statuses,
        "bookings": watch.bookings,
        "figures": [each.document() for each in figures],
        "looks": [asdict(look) for look in watch.looks],
    }


_TOLD = ("testid", "verdict", "outcome", "requests", "failed", "rps", "p50_ms", "p95_ms", "p99_ms")


def of_load(result: dict[str, Any], refused: int) -> Iterator[Figure]:
    """Whether the rate was held to the end. `refused`: of those that failed, how many were told to
    come again; with LAB_SHED some are, while the caches are empty.
    """
    yield at_most("requests that failed, and were not refused", 0, result["failed"] - refused)
    most = round(REFUSED_SHARE * result["requests"])
    yield at_most("requests that were refused", most, refused)
    yield at_most("windows in a row that broke a bound", 0, int(result["outcome"] != "held"))


def of_processes(looks: list[Look]) -> Iterator[Figure]:
    """The server's: medians of the last part beside those of the first that is warm."""
    first, last = parts(looks)
    kept = [pid for pid in first[0].workers if pid in last[-1].workers]
    yield at_most("workers that were replaced", 0, len(first[0].workers) - len(kept))
    for number, pid in enumerate(kept, 1):
        before, after = (median(look.workers[pid] for look in part) for part in (first, last))
        bound = max(WORKER_BYTES, WORKER_SHARE * before)
        yield at_most(f"growth of worker {number}, MiB", _mib(bound), _mib(after - before))
    connections = [max(look.connections for look in part) for part in (first, last)]
    yield at_most("growth of database connections", CONNECTIONS, connections[1] - connections[0])
    files = [max(look.files for look in part) for part in (first, last)]
    yield at_most("growth of open files", FILES, files[1] - files[0])


def of_disk(looks: list[Look], bookings: int, requests: int, seconds: float) -> Iterator[Figure]:
    """What lies on the disk at the end, or what was added to it from the first look on."""
    first, last = looks[0].folders, looks[-1].folders
    added = {name: last[name] - first[name] for name in last}
    yield at_most("cache directory, MiB", _mib(CACHE_BYTES), _mib(last["cache"]))
    yield at_most("Postgres' log, MiB", _mib(LOG_AHEAD_BYTES), _mib(last["log ahead"]))
    tables = TABLE_BYTES + BYTES_PER_BOOKING * bookings
    yield at_most(f"tables, MiB for {bookings} bookings", _mib(tables), _mib(added["tables"]))
    logs = LOG_BYTES + BYTES_PER_REQUEST * requests
    yield at_most(f"logs, MiB for {requests} requests", _mib(logs), _mib(added["logs"]))
    metrics = METRICS_BYTES + METRICS_BYTES_PER_HOUR * seconds / 3600
    yield at_most("Prometheus' data, MiB", _mib(metrics), _mib(added["metrics"]))


def parts(looks: list[Look]) -> tuple[list[Look], list[Look]]:
    """The second sixth of the looks and the last."""
    size = max(1, len(looks) // _PARTS)
    return looks[size : 2 * size], looks[-size:]


def _mib(size: float) -> float:
    return round(size / _MIB, 1)
