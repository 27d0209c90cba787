"""A long load at half of the target's capacity, to find unexpected growth."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from lab_settings import durations

from load_lab.capacity import target_capacity as capacity
from load_lab.capacity.target_capacity import TargetCapacity, find_target_capacity
from load_lab.console import Progress
from load_lab.errors import Interrupted, UsageError
from load_lab.load.k6 import check
from load_lab.load.load import Load, new_testid
from load_lab.metrics.prometheus import Prometheus, PrometheusUnavailable
from load_lab.metrics.windows import Bounds
from load_lab.results.provenance import facts, store_result
from load_lab.run.single_run import run_once
from load_lab.soak.growth import load_checks, sample_checks
from load_lab.soak.limits import memory_checks, peaks
from load_lab.soak.samples import Sampler
from load_lab.targets.subject import Growth, Running, Subject

SHARE = 0.5
MIN_SECONDS = 60
SAMPLES = 120


@dataclass(frozen=True)
class Options:
    """The load: `rate` requests/s; None for half of the capacity."""

    seconds: float
    rate: int | None = None


def validate_options(duration: str, rate: int | None) -> Options:
    """Return the validated options.

    Raises:
        UsageError: the duration is invalid, or too short to distinguish growth from a start.
    """
    if not re.fullmatch(durations.PATTERN, duration):
        raise UsageError(f"--duration {duration} is none. Write it like 180s, 3m or 1h.")
    seconds = durations.seconds(duration)
    if seconds < MIN_SECONDS:
        raise UsageError(
            f"--duration {duration} is too short: caches fill and pools open in the first part of "
            f"it. Give it {MIN_SECONDS}s or more."
        )
    return Options(seconds, rate)


def run(subject: Subject, options: Options) -> dict[str, Any]:
    """Sustain the rate, measure growth, store the document, and return it.

    Raises:
        UsageError: what may grow can't be seen from here.
        LabError: the target failed, or sustains no rate.
        Interrupted: the user pressed Ctrl-C.
    """
    growth, seconds = subject.growth, capacity.SECONDS + options.seconds + 90
    with subject.used(), Progress(seconds) as progress, subject.running() as running:
        running.require_visible("their memory, files and threads")
        # Before the search, so that a wrong value fails early.
        check(running.engine, running.target, _load(subject, options, options.rate or 1))
        with facts(running.engine, running.settings, subject.facts()) as provenance:
            limit = _limit(subject, running, options, progress)
            rate = options.rate or max(1, round(SHARE * limit.rate)) if limit else options.rate or 1
            progress.begin(f"{rate} requests/s for {options.seconds:.0f} s", options.seconds + 30)
            measurements = _measure(subject, running, growth, options, rate)
    load = {
        "target": subject.name,
        "scenario": subject.scenario or running.target.description,
        "seconds": options.seconds,
        "rate": rate,
    }
    settings = {
        "settings": running.settings.model_dump(),
        "limit": asdict(limit) if limit else None,
    }
    return store_result("soak", {**provenance, **load, **settings, **measurements})


def _limit(
    subject: Subject, running: Running, options: Options, progress: Progress
) -> TargetCapacity | None:
    """Return the capacity, unless the rate was given. It may be a lower bound: half of the
    generator's maximum is a valid load as well.
    """
    if options.rate is not None:
        return None
    progress.begin("capacity", capacity.SECONDS)
    return find_target_capacity(running, subject.scenario, progress.show_step)


def _load(subject: Subject, options: Options, rate: int) -> Load:
    duration, testid = f"{options.seconds:g}s", new_testid("soak")
    return Load("hold", subject.scenario, rate=rate, duration=duration, testid=testid)


def _measure(
    subject: Subject, running: Running, growth: Growth, options: Options, rate: int
) -> dict[str, Any]:
    """Run the load, and return its result with all samples taken during it."""
    step = max(1.0, options.seconds / SAMPLES)
    start = time.time()
    with Sampler(running, growth, step) as sampler, _store_on_interrupt(sampler):
        load = _load(subject, options, rate)
        single_run = run_once(running.engine, running.target, load, Bounds())
    result = single_run.result
    memory = _memory(subject, running, start, step)
    checks = [
        *load_checks(result, result.statuses),
        *sample_checks(sampler, result.requests, options.seconds, growth.folders),
        *memory_checks(subject.memory_limits, memory),
    ]
    return {
        "result": result.model_dump(include=_RESULT_FIELDS),
        "statuses": result.statuses,
        "rows": {growth.rows: sampler.rows} if growth.rows else {},
        "figures": [check_result.document() for check_result in checks],
        "unseen": list(running.find_unseen()),
        "looks": [asdict(sample) for sample in sampler.samples],
    }


@contextmanager
def _store_on_interrupt(sampler: Sampler) -> Iterator[None]:
    """Store the samples if the load is interrupted, so that an hour of samples is not lost."""
    try:
        yield
    except Interrupted as interrupted:
        path = store_result(
            "soak-interrupted", {"looks": [asdict(sample) for sample in sampler.samples]}
        )
        raise Interrupted(
            f"{interrupted} What was looked at until then is in {path['files']['result']}."
        ) from None


def _memory(subject: Subject, running: Running, start: float, step: float) -> dict[str, int]:
    """Return the most memory of each service; empty if Prometheus is down."""
    prometheus = Prometheus(running.settings.prometheus_url)
    try:
        return peaks(prometheus, subject.memory_limits, start, time.time(), step=max(5.0, step))
    except PrometheusUnavailable:
        return {}


_RESULT_FIELDS = {
    "testid",
    "verdict",
    "outcome",
    "requests",
    "failed",
    "rps",
    "p50_ms",
    "p95_ms",
    "p99_ms",
}
