"""The stack's break point with its current settings, on which overloads and soaks are based."""

import math
from dataclasses import dataclass

from lab.analysis.result import LimitedBy, Result
from lab.analysis.windows import Bounds
from lab.errors import LabError
from lab.load.load import Load, new_testid
from lab.stack.engine import Engine
from lab.suites.single_run import run_once
from lab.targets.reference.app import ReferenceApp

# Enough for a few workers more than two, few enough that responses stay fast.
_FULL_VUS, _FULL_SECONDS = 8, 6
# The ramp goes to this multiple of the rate that the target sustains without pauses. By then its
# queue has grown long enough to exceed the limit on p95.
_RAMP_FACTOR, _RAMP_SECONDS = 1.7, 40
SECONDS = _FULL_SECONDS + _RAMP_SECONDS


@dataclass(frozen=True)
class Limit:
    """The highest sustained requests/s when a limit was exceeded, and the best goodput before it.
    `by` is the bottleneck: if it is the generator, the target sustains more. `cpu_speed` is that of
    the ramp, see lab/host/noise.py.
    """

    rate: float
    goodput: float
    testid: str
    by: LimitedBy = "target"
    cpu_speed: float | None = None


def find_limit(engine: Engine, scenario: str) -> Limit:
    """Load without pauses for a moment, then ramp up beyond that rate, twice if necessary.

    Raises:
        LabError: the stack did not break, or something else was the limit.
    """
    result = _ramp(engine, scenario)
    limit = limit_of(result)
    if result.break_point is None or limit.by != "target":
        raise LabError(
            f"The break point of {scenario} is not known: {result.verdict}. The generator "
            "must be the stronger side; try a dearer scenario, or LAB_NGINX_CACHE=off."
        )
    return limit


def find_sustained(engine: Engine, scenario: str) -> Limit:
    """Find the limit like `find_limit`; if the generator is the limit, return the rate until then.

    Raises:
        LabError: no rate was sustained.
    """
    return limit_of(_ramp(engine, scenario))


def _ramp(engine: Engine, scenario: str) -> Result:
    """Return the result of a ramp beyond the rate without pauses. If that was sustained, ramp
    beyond its goodput: a shared CPU may have become faster in between.
    """
    result = _ramp_to(engine, scenario, _closed_loop_rate(engine, scenario))
    if result.outcome == "held" and result.limited_by == "none":
        return _ramp_to(engine, scenario, result.goodput)
    return result


def _closed_loop_rate(engine: Engine, scenario: str) -> float:
    """Return the responses per second without pauses."""
    full = Load(
        "closed",
        scenario,
        vus=_FULL_VUS,
        duration=f"{_FULL_SECONDS}s",
        testid=new_testid("capacity"),
    )
    rate = run_once(engine, ReferenceApp(engine), full, Bounds()).result.answers_per_second
    if not rate:
        raise LabError(f"No request of {full.testid} was answered. See `lab logs backend`.")
    return rate


def _ramp_to(engine: Engine, scenario: str, rate: float) -> Result:
    ramp = Load(
        "breakpoint",
        scenario,
        rate=math.ceil(_RAMP_FACTOR * rate),
        duration=f"{_RAMP_SECONDS}s",
        testid=new_testid("breakpoint"),
    )
    return run_once(engine, ReferenceApp(engine), ramp, Bounds()).result


def limit_of(result: Result) -> Limit:
    """Return the rate that a ramp sustained; without a break point, its best goodput.

    Raises:
        LabError: no rate was sustained, or it is unknown.
    """
    if result.outcome == "unrecorded":
        raise LabError(
            f"The capacity of {result.scenario} is unknown: {result.verdict}. Try again "
            "when nothing else runs here; a soak whose rate is given needs no ramp: "
            "lab soak --rate 100"
        )
    point = result.break_point
    rate, goodput = (point.rate, point.goodput) if point else (result.goodput, result.goodput)
    if not goodput:
        raise LabError(
            f"No answer to {result.scenario} came in time, however few were asked for: "
            f"{result.verdict}. See where the time goes (lab profile), or try LAB_DETAIL=fast."
        )
    return Limit(rate, goodput, result.testid, result.limited_by, result.cpu_speed)
