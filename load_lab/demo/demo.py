"""The demo: three variants of one page, each ramped until it breaks; a table and a chart."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import httpx

from load_lab.console import note, step
from load_lab.errors import Interrupted, LabError
from load_lab.interrupts import interruptible, uninterrupted
from load_lab.load import Profile, Scenario
from load_lab.load.load import Load, new_testid
from load_lab.metrics.windows import Bounds, Window
from load_lab.results.formatting import milliseconds, rate, times
from load_lab.results.limit import Limit
from load_lab.results.provenance import SCHEMA_VERSION, host, store_result
from load_lab.results.result import Result
from load_lab.run.single_run import SingleRun, run_once
from load_lab.settings import Settings
from load_lab.stack import http
from load_lab.stack.engine import Engine
from load_lab.stack.locks import change_lock
from load_lab.stack.reference import LIST
from load_lab.targets.file import Texts, Variation
from load_lab.targets.reference.subject import ReferenceSubject
from load_lab.targets.subject import Instance, Variant

# Limit on p95: this multiple of a single client's response time, and at least a second.
_SINGLE_CLIENT_FACTOR = 4
_MIN_LIMIT_MS = 1000
# The ramp's top, as a multiple of its first rate; the ramp stops at its break, long before.
_RAMP_FACTOR = 300
# The first ramp starts at this share of a single client's rate.
_FIRST_SHARE = 0.25
_MAX_RATE = 20_000


def _variant(name: str, **settings: str) -> Variant:
    plain: Texts = {
        **{"LAB_DETAIL": "naive", "LAB_LOCAL_CACHE": "off", "LAB_REDIS_CACHE": "off"},
        **{"LAB_NGINX_CACHE": "off", "LAB_SHED": "off", "LAB_LATENCY_MS": "0"},
    }
    return Variant(name, Variation(options={**plain, **settings}))


VARIANTS = (
    _variant("nested serializers, no cache"),
    _variant("quick code, no cache", LAB_DETAIL="fast"),
    _variant("quick code, protected Nginx cache", LAB_DETAIL="fast", LAB_NGINX_CACHE="protected"),
)


@dataclass(frozen=True)
class Rung:
    """A variant's ramp: the highest sustained rate per second, and p95 there in ms.

    `times` compares it with the previous variant, None for the first. `windows` are those of the
    ramp.
    """

    name: str
    rate: float
    p95_ms: float | None
    limited_by: Limit
    at_least: bool
    times: float | None
    sentence: str
    testid: str
    windows: list[Window]


def run(engine: Engine, settings: Settings) -> dict[str, Any]:
    """Start the stack, run the smoke test, ramp each variant, and store document and chart.

    Afterwards the stack runs with its previous settings.

    Raises:
        LabError: the stack does not start, or a run failed.
        Interrupted: Ctrl-C or SIGTERM.
    """
    subject = ReferenceSubject(engine, Scenario.DETAIL)
    with _running_stack(engine, settings), subject.used():
        single_client_ms, smoke = _smoke(subject)
        bounds = Bounds(
            p95_ms=max(_MIN_LIMIT_MS, math.ceil(_SINGLE_CLIENT_FACTOR * single_client_ms))
        )
        note(
            f"One request alone takes {milliseconds(single_client_ms)} ms. Limit for every "
            f"variant: p95 of {bounds.p95_ms:,.0f} ms."
        )
        rungs = list(_rungs(subject, bounds, _FIRST_SHARE * 1000 / single_client_ms))
        base = subject.settings
    document = {
        "schema_version": SCHEMA_VERSION,
        "alone_ms": round(single_client_ms, 1),
        "bounds": asdict(bounds),
        "smoke": {"testid": smoke.result.testid, "verdict": smoke.result.verdict},
        "rungs": [asdict(rung) for rung in rungs],
        "host": host(base, engine.name),
        "settings": base.model_dump(),
    }
    # Altair takes half a second to import, which would delay every other command.
    from load_lab.demo.chart import draw

    return store_result("demo", document, draw)


@contextmanager
def _running_stack(engine: Engine, settings: Settings) -> Iterator[None]:
    """Start the stack if it is not running; in that case stop it if the demo is interrupted."""
    previous = engine.settings()
    try:
        with interruptible():
            with change_lock():
                engine.up(previous or settings)
            yield
    except Interrupted:
        if previous is None:
            with uninterrupted("Stopping the stack first; a moment."), change_lock():
                engine.down()
        raise Interrupted("The demo was interrupted. Start it again: lab demo") from None


def _smoke(stack: Instance) -> tuple[float, SingleRun]:
    """Measure one request alone, then test all three routes with one visitor.

    Raises:
        LabError: a check failed.
    """
    load = Load(
        Profile.SMOKE, duration="1s", vus=1, journey_details=2, testid=new_testid(Profile.SMOKE)
    )
    with stack.running(VARIANTS[0]) as running:
        with step("Measuring one request alone"):
            single_client_ms = _single_client_ms(running.settings)
        with step("Smoke test of the three routes"):
            smoke = run_once(running.engine, running.target, load, Bounds(), quiet=True)
    if smoke.result.outcome == "failed":
        raise LabError(f"The smoke test {smoke.result.verdict}. See `lab logs backend`.")
    return single_client_ms, smoke


def _single_client_ms(settings: Settings) -> float:
    """Return a detail page's response time for a single client: the second request, on a warm
    worker.
    """
    try:
        objects = http.get(f"{settings.target_url}{LIST}", timeout=60).json()
        url = f"{settings.target_url}{LIST}{objects[0]['id']}/"
        http.get(url, timeout=60)
        start = time.perf_counter()
        http.get(url, timeout=60)
    except (httpx.HTTPError, ValueError, LookupError) as error:
        raise LabError(f"The target did not answer ({error}). See `lab logs backend`.") from None
    return (time.perf_counter() - start) * 1000


def _rungs(stack: Instance, bounds: Bounds, first_rate: float) -> Iterator[Rung]:
    previous: Rung | None = None
    for number, variant in enumerate(VARIANTS, start=1):
        load = _ramp(previous.rate if previous else first_rate, bounds)
        title = f"{number} of {len(VARIANTS)}: {variant.name}, {load.start_rate:,} requests/s up"
        with stack.running(variant) as running, step(title):
            result = run_once(running.engine, running.target, load, bounds, quiet=True).result
        previous = _rung(variant, result, previous)
        note(f"  {previous.sentence}")
        yield previous


def _ramp(start: float, bounds: Bounds) -> Load:
    return Load(
        Profile.BREAKPOINT_GEOMETRIC,
        Scenario.DETAIL,
        start_rate=round(max(start, 0.1), 2),
        rate=min(math.ceil(start * _RAMP_FACTOR), _MAX_RATE),
        bound_ms=math.ceil(bounds.p95_ms),
        testid=new_testid(Profile.BREAKPOINT_GEOMETRIC),
    )


def _rung(variant: Variant, result: Result, previous: Rung | None) -> Rung:
    """Return the result of a ramp.

    Raises:
        LabError: it could not be read back, or no rate was sustained.
    """
    point = result.break_point
    sustained_rate = point.rate if point else result.goodput
    if result.outcome == "unrecorded" or not sustained_rate:
        raise LabError(f"The ramp of '{variant.name}' has no result: {result.verdict}.")
    at_least = result.lower_bound is not None
    factor = sustained_rate / previous.rate if previous else None
    p95_ms = _p95_at(result.windows, sustained_rate)
    return Rung(
        name=variant.name,
        rate=sustained_rate,
        p95_ms=p95_ms,
        limited_by=result.lower_bound or result.limited_by,
        at_least=at_least,
        times=factor,
        sentence=_sentence(variant.name, sustained_rate, p95_ms, result, factor),
        testid=result.testid,
        windows=result.windows,
    )


def _p95_at(windows: list[Window], offered: float) -> float | None:
    """Return the p95 of the last window with at most this offered rate."""
    candidates = [window for window in windows if window.offered <= offered]
    return candidates[-1].p95_ms if candidates else None


def _sentence(
    name: str, sustained_rate: float, p95_ms: float | None, result: Result, factor: float | None
) -> str:
    at_least = "at least " if result.lower_bound else ""
    comparison = f", {times(factor)} the variant before" if factor else ""
    p95 = "" if p95_ms is None else f" with a p95 of {milliseconds(p95_ms)} ms"
    return (
        f"{name[0].upper()}{name[1:]}: {at_least}{rate(sustained_rate)} requests/s{p95}{comparison}"
        f"; limited by {(result.lower_bound or result.limited_by).text}."
    )
