"""Growth during a long load, measured against its limits."""

from collections.abc import Iterator
from itertools import groupby
from statistics import median

from load_lab.metrics.windows import Window
from load_lab.results.breakpoint import BREAK_WINDOWS
from load_lab.results.result import Result
from load_lab.soak.limits import LimitCheck, at_least, at_most
from load_lab.soak.samples import Sample, Sampler

_MIB = 1024**2
# Caches fill and pools open in the first sixth, so the second sixth is compared with the last.
_PARTS = 6
# Maximum share of failed samples.
MAX_MISSED_SHARE = 0.05
# Minimum share of the load at the time of the last sample.
MIN_SAMPLED_SHARE = 0.9

# Maximum share of requests with status 503.
MAX_REFUSED_SHARE, _REFUSED_STATUS = 0.001, "503"
# Limits of growth. A worker's memory varies by some MiB with its last responses.
WORKER_BYTES, WORKER_SHARE = 8 * _MIB, 0.05
CONNECTIONS, FILES = 2, 20
# max_size in nginx/templates/cache, with 64 MiB of scratch files; a test compares them.
BASIC_CACHE_BYTES, CACHE_BYTES = (5 * 1024 + 64) * _MIB, (1024 + 256 + 64) * _MIB
# max_wal_size in postgres/postgresql.conf, which Postgres may exceed by a quarter under load.
LOG_AHEAD_BYTES = 5 * 1024 * _MIB
# Measured: 0.9 KB per booking with its guests, key, response and indexes; tables grow in steps.
BYTES_PER_BOOKING, TABLE_BYTES = 2048, 32 * _MIB
# A line of Nginx's access log; `lab k6` truncates it before each test. Other logs are cut at 20 MB.
BYTES_PER_REQUEST, LOG_BYTES = 400, 100 * _MIB
METRICS_BYTES, METRICS_BYTES_PER_HOUR = 100 * _MIB, 1024 * _MIB


def load_checks(result: Result, statuses: dict[str, int]) -> Iterator[LimitCheck]:
    """Check whether the rate was sustained to the end. 503 responses are counted separately:
    LAB_SHED sends some while the caches are empty.
    """
    failed, known = result.failed, bool(statuses) or not result.failed
    refused = statuses.get(_REFUSED_STATUS, 0) if known else None
    others = None if refused is None else failed - refused
    yield at_most("requests that failed, and were not refused", 0, others)
    yield at_most("requests that were refused", round(MAX_REFUSED_SHARE * result.requests), refused)
    windows = result.windows if result.outcome != "unrecorded" else []
    yield at_most(
        "windows in a row that exceeded a limit", BREAK_WINDOWS - 1, violations_in_a_row(windows)
    )


def violations_in_a_row(windows: list[Window]) -> int | None:
    """Return the most windows in a row that exceeded a limit; None without windows."""
    streaks = groupby(bool(window.broken) for window in windows)
    lengths = [len(list(streak)) if has_violation else 0 for has_violation, streak in streaks]
    return max(lengths, default=None)


def sample_checks(
    sampler: Sampler, requests: int, seconds: float, nginx_cache: str
) -> Iterator[LimitCheck]:
    """Check the samples; with too few of them, the growth is unknown and a limit is violated."""
    samples = sampler.samples
    attempts = len(samples) + sampler.missed
    yield at_most(
        "looks that could not be made", round(MAX_MISSED_SHARE * attempts), sampler.missed
    )
    if len(samples) < 2 * _PARTS:
        yield at_least("looks", 2 * _PARTS, len(samples))
        return
    yield at_least("the last look, s into it", round(MIN_SAMPLED_SHARE * seconds), samples[-1].at)
    yield from process_checks(samples)
    yield from disk_checks(samples, sampler.bookings, requests, seconds, nginx_cache)


def process_checks(samples: list[Sample]) -> Iterator[LimitCheck]:
    """Compare the server's processes in the last part with those in the first warm part."""
    first, last = parts(samples)
    all_pids = {pid for sample in samples for pid in sample.workers}
    replaced = len(all_pids - samples[-1].workers.keys()) if all_pids else None
    yield at_most("workers that were replaced", 0, replaced)
    stable_pids = [pid for pid in first[0].workers if pid in samples[-1].workers]
    for number, pid in enumerate(stable_pids, 1):
        before, after = (median(_sizes(pid, part)) for part in (first, last))
        bound = max(WORKER_BYTES, WORKER_SHARE * before)
        yield at_most(f"growth of worker {number}, MiB", _mib(bound), _mib(after - before))
    connections = [max(sample.connections for sample in part) for part in (first, last)]
    yield at_most("growth of database connections", CONNECTIONS, connections[1] - connections[0])
    files = [max(sample.files for sample in part) for part in (first, last)]
    yield at_most("growth of open files", FILES, files[1] - files[0])


def _sizes(pid: int, samples: list[Sample]) -> list[int]:
    return [sample.workers[pid] for sample in samples if pid in sample.workers]


def disk_checks(
    samples: list[Sample], bookings: int, requests: int, seconds: float, nginx_cache: str
) -> Iterator[LimitCheck]:
    """Check the size on disk at the end, or its growth since the first sample."""
    first, last = samples[0].folders, samples[-1].folders
    increase = {name: last[name] - first[name] for name in last}
    cache = BASIC_CACHE_BYTES if nginx_cache == "basic" else CACHE_BYTES
    yield at_most("cache directory, MiB", _mib(cache), _mib(last["cache"]))
    yield at_most("Postgres's log, MiB", _mib(LOG_AHEAD_BYTES), _mib(last["log ahead"]))
    tables = TABLE_BYTES + BYTES_PER_BOOKING * bookings
    yield at_most(f"tables, MiB for {bookings} bookings", _mib(tables), _mib(increase["tables"]))
    logs = LOG_BYTES + BYTES_PER_REQUEST * requests
    yield at_most(f"logs, MiB for {requests} requests", _mib(logs), _mib(increase["logs"]))
    metrics = METRICS_BYTES + METRICS_BYTES_PER_HOUR * seconds / 3600
    yield at_most("Prometheus's data, MiB", _mib(metrics), _mib(increase["metrics"]))


def parts(samples: list[Sample]) -> tuple[list[Sample], list[Sample]]:
    """Return the second sixth of the samples, and the last."""
    size = max(1, len(samples) // _PARTS)
    return samples[size : 2 * size], samples[-size:]


def _mib(size: float) -> float:
    return round(size / _MIB, 1)
