"""Growth during a long load, measured against its limits."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from statistics import median

from load_lab.metrics.windows import Window
from load_lab.results.breakpoint import BREAK_WINDOWS
from load_lab.results.result import Result
from load_lab.soak.limits import LimitCheck, at_least, at_most, mib
from load_lab.soak.samples import Sample, Sampler
from load_lab.targets.subject import Folder, Stored

_MIB = 1024**2
# Caches fill and pools open in the first sixth, so the second sixth is compared with the last.
_PARTS = 6
# Maximum share of failed samples.
MAX_MISSED_SHARE = 0.05
# Minimum share of the load at the time of the last sample.
MIN_SAMPLED_SHARE = 0.9

# Maximum share of requests with status 503.
MAX_REFUSED_SHARE, _REFUSED_STATUS = 0.001, "503"
# Limits of growth. A worker's memory varies by some MiB with its last responses. A pool opens its
# threads on demand, and a client's connections are files, too.
WORKER_BYTES, WORKER_SHARE = 8 * _MIB, 0.05
CONNECTIONS, FILES, THREADS = 2, 20, 20


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
    sampler: Sampler, requests: int, seconds: float, folders: Mapping[str, Folder]
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
    yield from disk_checks(samples, Stored(requests, seconds, sampler.rows), folders)


def process_checks(samples: list[Sample]) -> Iterator[LimitCheck]:
    """Compare the server's processes in the last part with those in the first warm part."""
    first, last = parts(samples)
    yield at_most("processes that were replaced", 0, replaced(samples))
    stable_pids = [pid for pid in first[0].workers if pid in samples[-1].workers]
    for number, pid in enumerate(stable_pids, 1):
        before, after = (median(_sizes(pid, part)) for part in (first, last))
        bound = max(WORKER_BYTES, WORKER_SHARE * before)
        yield at_most(f"growth of process {number}, MiB", mib(bound), mib(after - before))
    # Which database it has may be seen only under load.
    known = [sample for sample in samples if sample.connections is not None]
    if len(known) >= 2 * _PARTS:
        yield _growth("database connections", CONNECTIONS, known, _connections)
    yield _growth("open files", FILES, samples, lambda sample: sample.files)
    yield _growth("threads", THREADS, samples, lambda sample: sample.threads)


def replaced(samples: list[Sample]) -> int | None:
    """Return how many processes ended; without those of a single sample, which a program may start
    for one request. None if none was seen.
    """
    seen = Counter(pid for sample in samples for pid in sample.workers)
    lasting = {pid for pid, count in seen.items() if count > 1}
    return len(lasting - samples[-1].workers.keys()) if seen else None


def _connections(sample: Sample) -> int:
    return sample.connections or 0


def _growth(
    what: str, bound: int, samples: list[Sample], count: Callable[[Sample], int]
) -> LimitCheck:
    """Check the growth of the median: an app may open a connection or a thread for each request."""
    first, last = (median(map(count, part)) for part in parts(samples))
    return at_most(f"growth of {what}", bound, last - first)


def _sizes(pid: int, samples: list[Sample]) -> list[int]:
    return [sample.workers[pid] for sample in samples if pid in sample.workers]


def disk_checks(
    samples: list[Sample], load: Stored, folders: Mapping[str, Folder]
) -> Iterator[LimitCheck]:
    """Check the size on disk at the end, or its growth since the first sample."""
    first, last = samples[0].folders, samples[-1].folders
    for name, folder in folders.items():
        size = last[name] if folder.in_all else last[name] - first[name]
        label = folder.label.format(requests=load.requests, rows=load.rows)
        yield at_most(label, mib(folder.limit(load)), mib(size))


def parts(samples: list[Sample]) -> tuple[list[Sample], list[Sample]]:
    """Return the second sixth of the samples, and the last."""
    size = max(1, len(samples) // _PARTS)
    return samples[size : 2 * size], samples[-size:]
