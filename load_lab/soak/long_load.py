"""A long load at half of the stack's capacity, to find unexpected growth."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from lab_settings import durations

from load_lab.capacity import stack_capacity as capacity
from load_lab.capacity.stack_capacity import StackCapacity, find_stack_capacity
from load_lab.console import Progress
from load_lab.errors import Interrupted, UsageError
from load_lab.load.k6 import check
from load_lab.load.load import Load, new_testid
from load_lab.metrics.prometheus import Prometheus, PrometheusUnavailable
from load_lab.metrics.windows import Bounds
from load_lab.paths import current_state
from load_lab.results.provenance import facts, store_result
from load_lab.run.single_run import run_once
from load_lab.settings import Settings
from load_lab.soak.growth import load_checks, sample_checks
from load_lab.soak.limits import memory_checks, peaks
from load_lab.soak.samples import Sampler
from load_lab.stack.engine import Engine, require_processes
from load_lab.stack.exclusive import exclusive_use, prepare
from load_lab.targets.reference.app import ReferenceApp

SHARE = 0.5
MIN_SECONDS = 60
SAMPLES = 120


@dataclass(frozen=True)
class Options:
    """The load: `rate` requests/s of the scenario; None for half of the capacity."""

    scenario: str
    seconds: float
    rate: int | None = None


def validate_options(scenario: str, duration: str, rate: int | None) -> Options:
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
    return Options(scenario, seconds, rate)


def run(engine: Engine, options: Options) -> dict[str, Any]:
    """Sustain the rate, measure growth, store the document, and return it.

    Raises:
        UsageError: the engine has no processes here.
        LabError: the stack failed, or sustains no rate.
        Interrupted: the user pressed Ctrl-C.
    """
    require_processes(engine, "soak", "looks into folders and processes")
    seconds = capacity.SECONDS + options.seconds + 90
    with exclusive_use(engine, keep_settings=True) as stack, Progress(seconds) as progress:
        # Before the data is loaded again, so that a wrong name fails early.
        check(engine, ReferenceApp(engine), _load(options, rate=1))
        prepare(engine, stack)
        with facts(engine, stack.base) as provenance:
            limit = _limit(engine, options, progress)
            rate = options.rate or max(1, round(SHARE * limit.rate)) if limit else options.rate or 1
            progress.begin(f"{rate} requests/s for {options.seconds:.0f} s", options.seconds + 30)
            measurements = _measure(engine, options, _load(options, rate), stack.base)
    load = {"scenario": options.scenario, "seconds": options.seconds, "rate": rate}
    settings = {"settings": stack.base.model_dump(), "limit": asdict(limit) if limit else None}
    return store_result("soak", {**provenance, **load, **settings, **measurements})


def _limit(engine: Engine, options: Options, progress: Progress) -> StackCapacity | None:
    """Return the stack's capacity, unless the rate was given. It may be a lower bound: half of the
    generator's maximum is a valid load as well.
    """
    if options.rate is not None:
        return None
    progress.begin("capacity", capacity.SECONDS)
    return find_stack_capacity(engine, options.scenario, progress.show_step)


def _load(options: Options, rate: int) -> Load:
    duration, testid = f"{options.seconds:g}s", new_testid("soak")
    return Load("hold", options.scenario, rate=rate, duration=duration, testid=testid)


def _measure(engine: Engine, options: Options, load: Load, settings: Settings) -> dict[str, Any]:
    """Run the load, and return its result with all samples taken during it."""
    step = max(1.0, options.seconds / SAMPLES)
    start = time.time()
    with Sampler(engine, current_state(), step) as sampler, _store_on_interrupt(sampler):
        single_run = run_once(engine, ReferenceApp(engine), load, Bounds())
    result = single_run.result
    memory = _memory(settings, start, step)
    checks = [
        *load_checks(result, result.statuses),
        *sample_checks(sampler, result.requests, options.seconds, settings.LAB_NGINX_CACHE),
        *memory_checks(memory),
    ]
    return {
        "result": result.model_dump(include=_RESULT_FIELDS),
        "statuses": result.statuses,
        "bookings": sampler.bookings,
        "figures": [check_result.document() for check_result in checks],
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


def _memory(settings: Settings, start: float, step: float) -> dict[str, int]:
    """Return the most memory of each service; empty if Prometheus is down."""
    prometheus = Prometheus(settings.prometheus_url)
    try:
        return peaks(prometheus, start, time.time(), step=max(5.0, step))
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
