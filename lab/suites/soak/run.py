"""A long load at half of the stack's capacity, to find unexpected growth."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from lab_settings import durations

from lab.analysis.prometheus import Prometheus, Unanswered
from lab.analysis.provenance import facts, stored
from lab.analysis.windows import Bounds
from lab.console import Progress
from lab.errors import Interrupted, UsageError
from lab.load.k6 import Load, check, new_testid
from lab.paths import current_state
from lab.settings import Settings
from lab.stack.engine import Engine
from lab.stack.exclusive import borrowed, prepare
from lab.suites import breaking_rate
from lab.suites.breaking_rate import Limit, find_borne
from lab.suites.limits import peaks, within_limits
from lab.suites.single_run import SingleRun, responses_by_status, course, run_once
from lab.suites.soak.growth import of_load, of_looks
from lab.suites.soak.watch import Watch

SHARE = 0.5
LEAST_SECONDS = 60
LOOKS = 120


@dataclass(frozen=True)
class Options:
    """The load: `rate` requests/s of the scenario; None for half of the highest sustained rate."""

    scenario: str
    seconds: float
    rate: int | None = None


def validate_options(scenario: str, duration: str, rate: int | None) -> Options:
    """Return the validated options.

    Raises:
        UsageError: the duration is invalid, or too short to distinguish growth from a start.
    """
    if not re.match(durations.PATTERN, duration):
        raise UsageError(f"--duration {duration} is none. Write it like 180s, 3m or 1h.")
    seconds = durations.seconds(duration)
    if seconds < LEAST_SECONDS:
        raise UsageError(
            f"--duration {duration} is too short: caches fill and pools open in the first part of "
            f"it. Give it {LEAST_SECONDS}s or more."
        )
    return Options(scenario, seconds, rate)


def run(engine: Engine, options: Options) -> dict[str, Any]:
    """Sustain the rate, measure growth, store the document, and return it.

    Raises:
        UsageError: the engine is not native.
        LabError: the stack failed, or sustains no rate.
        Interrupted: the user pressed Ctrl-C.
    """
    if engine.name != "native":
        raise UsageError(
            f"`lab soak` looks into the native engine's folders and processes; this one is "
            f"{engine.name}. Stop this stack (lab down), then: LAB_ENGINE=native lab soak"
        )
    expected = breaking_rate.SECONDS + options.seconds + 90
    with borrowed(engine, as_set=True) as stack, Progress(expected) as progress:
        # Before the data is loaded again, so that a wrong name fails early.
        check(engine, _load(options, rate=1))
        prepare(engine, stack)
        with facts(engine, stack.base) as known:
            limit = _limit(engine, options, progress)
            held = options.rate or max(1, round(SHARE * limit.rate)) if limit else options.rate or 1
            progress.begin(f"{held} requests/s for {options.seconds:.0f} s", options.seconds + 30)
            found = _held(engine, options, _load(options, held), stack.base)
    named = {"scenario": options.scenario, "seconds": options.seconds, "rate": held}
    settings = {"settings": stack.base.model_dump(), "limit": asdict(limit) if limit else None}
    return stored("soak", {**known, **named, **settings, **found})


def _limit(engine: Engine, options: Options, progress: Progress) -> Limit | None:
    """Return the stack's capacity, unless the rate was given. It may be a lower bound: half of the
    generator's maximum is a valid load as well.
    """
    if options.rate is not None:
        return None
    progress.begin("break point", breaking_rate.SECONDS + 60)
    return find_borne(engine, options.scenario)


def _load(options: Options, rate: int) -> Load:
    duration, testid = f"{options.seconds:g}s", new_testid("soak")
    return Load("hold", options.scenario, rate=rate, duration=duration, testid=testid)


def _held(engine: Engine, options: Options, load: Load, settings: Settings) -> dict[str, Any]:
    """Run the load, and return its result with all samples taken during it."""
    step = max(1.0, options.seconds / LOOKS)
    began = time.time()
    with Watch(engine, current_state(), step) as watch, _keeping(watch):
        held = run_once(engine, load, Bounds())
    result = held.result
    memory, statuses = _from_prometheus(held, settings, began, step)
    figures = [
        *of_load(result, statuses),
        *of_looks(watch, result.requests, options.seconds, settings.LAB_NGINX_CACHE),
        *within_limits(memory),
    ]
    return {
        "result": result.model_dump(include=_TOLD),
        "statuses": statuses,
        "bookings": watch.bookings,
        "figures": [each.document() for each in figures],
        "looks": [asdict(look) for look in watch.looks],
    }


@contextmanager
def _keeping(watch: Watch) -> Iterator[None]:
    """Store the samples if the load is interrupted, so that an hour of samples is not lost."""
    try:
        yield
    except Interrupted as interrupted:
        path = stored("soak-interrupted", {"looks": [asdict(look) for look in watch.looks]})
        raise Interrupted(
            f"{interrupted} What was looked at until then is in {path['files']['result']}."
        ) from None


def _from_prometheus(
    held: SingleRun, settings: Settings, began: float, step: float
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the services' memory, and the responses by status; empty if Prometheus is down."""
    prometheus = Prometheus(settings.prometheus_url)
    _, started = course(held)
    try:
        return (
            peaks(prometheus, began, time.time(), step=max(5.0, step)),
            responses_by_status(prometheus, held.result.testid, started, held.result.seconds),
        )
    except Unanswered:
        return {}, {}


_TOLD = {"testid", "verdict", "outcome", "requests", "failed", "rps", "p50_ms", "p95_ms", "p99_ms"}
