"""Evaluation of a source's claims for the measured cells. Pure functions."""

from collections.abc import Callable, Mapping
from itertools import takewhile
from statistics import median
from typing import Any

from simpleeval import InvalidExpression, simple_eval

from lab.analysis.breakpoint import BreakPoint
from lab.analysis.result import METRICS, LowerBound, Result, WebSockets
from lab.analysis.windows import Bounds, Window
from lab.experiments.store import CellRun
from lab.host.sampler import CpuUse

HOLDS, HOLDS_NOT, NOT_MEASURED = "holds", "does not hold", "not measured"

_ROUTES = ("hotel_list", "hotel_detail")
_OF_BACKEND = ("hit", "miss", "unavailable")
_OUTCOMES = {
    "nginx": ("HIT", "MISS", "EXPIRED", "STALE", "UPDATING", "REVALIDATED", "BYPASS", "NONE"),
    "redis": _OF_BACKEND,
    "local": _OF_BACKEND,
}
# Functions of several values.
_OVER: dict[str, Callable[..., float]] = {
    "min": min,
    "max": max,
    "sum": lambda *values: sum(values),
}


class _NotMeasured(Exception):
    """A cell in an expression has no value."""


# The measured runs of each cell, by the cell's name.
_Cells = Mapping[str, list[CellRun]]
_Read = Callable[[Result], float | None]

# With one of these limits, a rate is a lower bound.
_LOWER_BOUNDS: dict[LowerBound, str] = {
    "generator_cpu": "is limited by the generator's CPU",
    "vu_cap": "is limited by the number of virtual users",
    "load": "held to the end of its ramp",
}
# As in the reported CPUs of old stacks (lab/experiments/old_stacks).
_GENERATOR = "the load generator"


def evaluate(claims: list[dict[str, Any]], runs: list[CellRun]) -> list[dict[str, Any]]:
    """Return each claim with its verdict, its measured metrics, and notes on their validity."""
    measured, missing = _by_name(runs), _reasons(runs)
    return [_claim(claim, measured, missing) for claim in claims]


def problems(claims: list[dict[str, Any]], names: set[str]) -> list[str]:
    """Return the errors in the expressions, to find them before a run of hours."""
    found = []
    for claim in claims:
        asked: list[str] = []
        functions = _functions(_Anything(), asked)
        try:
            values = {k: simple_eval(v, functions=functions) for k, v in claim["measures"].items()}
            _holds(claim, values)
        except ZeroDivisionError:
            pass  # with the trial's values; those of a run may differ
        except (InvalidExpression, SyntaxError, TypeError, ValueError) as error:
            found.append(f"claim {claim['id']}: {error}")
        found += [f"claim {claim['id']}: no cell {name}" for name in asked if name not in names]
    return found


class _Anything(dict[str, list[CellRun]]):
    """A measured run for every cell, for a trial."""

    def get(self, _name: str, _default: object = None) -> Any:
        ones: dict[str, Any] = {n: 1 for n, metric in METRICS.items() if metric.path == (n,)}
        sockets = WebSockets(**dict.fromkeys(WebSockets.model_fields, 1))
        window = Window(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
        result = Result(
            **ones,
            websockets=sockets,
            windows=[window],
            break_point=BreakPoint(1.0, 1.0, 1.0, 1.0, ()),
            cpu=[CpuUse(1.0, 1.0, 1.0)],
        )
        return [CellRun(name="any", state="measured", result=result)]


def _claim(claim: dict[str, Any], cells: _Cells, missing: Mapping[str, str]) -> dict[str, Any]:
    asked: list[str] = []
    functions = _functions(cells, asked)
    measured = {k: _value(v, functions) for k, v in claim["measures"].items()}
    silent = _gaps(asked, cells, missing)
    verdict, why = (NOT_MEASURED, silent) if silent else _verdict(claim, measured)
    said = [*why, *_notes(asked, cells)]
    return {**claim, "verdict": verdict, "measured": measured, "notes": said}


def _verdict(claim: dict[str, Any], measured: dict[str, float | None]) -> tuple[str, list[str]]:
    if None in measured.values():
        return NOT_MEASURED, []
    try:
        return (HOLDS if _holds(claim, measured) else HOLDS_NOT), []
    except (InvalidExpression, TypeError, ZeroDivisionError) as error:
        return NOT_MEASURED, [f"`{claim['holds']}` can't be judged: {error}"]


def _holds(claim: dict[str, Any], measured: Mapping[str, Any]) -> bool:
    return bool(simple_eval(claim["holds"], names=dict(measured), functions={"abs": abs, **_OVER}))


def _value(expression: str, functions: dict[str, Callable[..., Any]]) -> float | None:
    try:
        return round(float(simple_eval(expression, functions=functions)), 4)
    except (_NotMeasured, ZeroDivisionError):
        return None


def _functions(cells: _Cells, asked: list[str]) -> dict[str, Callable[..., Any]]:
    """Return functions such as `rps("detail/naive/none")`; each call adds its cell to `asked`."""

    def of(read: _Read) -> Callable[[str], float]:
        return lambda name: _median(read, name, cells, asked)

    metrics = {name: of(metric.of) for name, metric in METRICS.items()}
    return {**_OVER, **metrics, "errors_from": of(_errors_from), **_with_parameters(of)}


def _median(read: _Read, name: str, cells: _Cells, asked: list[str]) -> float:
    """Return the median of a cell's repeats.

    Raises:
        _NotMeasured: no repeat has a value.
    """
    asked.append(name)
    results = [run.result for run in cells.get(name, []) if run.result]
    values = [value for result in results if (value := read(result)) is not None]
    if not values:
        raise _NotMeasured(name)
    return median(values)


def _with_parameters(
    of: Callable[[_Read], Callable[[str], float]],
) -> dict[str, Callable[..., float]]:
    """Return the functions that take more than the name of a cell."""

    def answers(name: str, layer: str, *outcomes: str) -> float:
        for outcome in outcomes:
            _known(outcome, _OUTCOMES.get(layer, ()))
        return of(lambda result: _answers(result, layer, outcomes))(name)

    def builds(name: str, route: str) -> float:
        _known(route, _ROUTES)
        return of(lambda result: result.builds.get(route, 0))(name)

    def rate_within(name: str, milliseconds: float) -> float:
        return of(lambda result: _rate_within(result, milliseconds))(name)

    return {"answers": answers, "builds": builds, "rate_within": rate_within}


def _errors_from(result: Result) -> float:
    """Return the rate of the first window above the error limit; 0 if there is none."""
    broken = (w.offered for w in result.windows if w.error_ratio > Bounds().error_ratio)
    return next(broken, 0.0)


def _rate_within(result: Result, milliseconds: float) -> float | None:
    """Return the best goodput before the p95 of a window exceeded this number of milliseconds.

    0 if the first window exceeded it; None for a load without windows.
    """
    windows = result.windows
    within = takewhile(lambda w: w.p95_ms is None or w.p95_ms <= milliseconds, windows)
    return max((w.goodput for w in within), default=0.0) if windows else None


def _known(name: str, allowed: tuple[str, ...]) -> None:
    """Check a name, because an unknown one would count as 0.

    Raises:
        ValueError: the name is not allowed.
    """
    if name not in allowed:
        raise ValueError(f"{name} is not known here; known: {', '.join(allowed) or 'nothing'}")


def _answers(result: Result, layer: str, outcomes: tuple[str, ...]) -> float:
    counts = result.cache.get(layer, {})
    return sum(count for outcome, count in counts.items() if outcome in outcomes)


def _by_name(runs: list[CellRun]) -> dict[str, list[CellRun]]:
    found: dict[str, list[CellRun]] = {}
    for run in runs:
        if run.result:
            found.setdefault(run.name, []).append(run)
    return found


def _gaps(asked: list[str], cells: _Cells, missing: Mapping[str, str]) -> list[str]:
    """Return the cells that decide nothing: not measured, or without a successful response.

    A cell without a successful response allows no conclusion: a load that missed its target also
    has only zeros.
    """
    found = []
    for name in dict.fromkeys(asked):
        runs = cells.get(name)
        if not runs:
            found.append(f"{name} was not measured{missing.get(name, '')}")
        elif not any(run.result.successes for run in runs if run.result):
            found.append(f"{name} gave no successful answer")
    return found


def _reasons(runs: list[CellRun]) -> dict[str, str]:
    """Return the stored errors of cells, by cell name."""
    return {run.name: f": {run.error}" for run in runs if run.error}


def _notes(asked: list[str], cells: _Cells) -> list[str]:
    """Return notes that limit the meaning of the metrics."""
    found = []
    for name in dict.fromkeys(asked):
        runs = cells.get(name, [])
        limits = {run.result.lower_bound for run in runs if run.result}
        found += [
            f"{name} {text}: its rates are lower bounds"
            for limit, text in _LOWER_BOUNDS.items()
            if limit in limits
        ]
        found += [note for note in (_shares_its_layer(name, runs),) if note]
    return found


def _shares_its_layer(name: str, runs: list[CellRun]) -> str | None:
    """Return a note if the channel layer should have a separate CPU, but shares the generator's."""
    if _GENERATOR not in {(run.legacy or {}).get("layer_cpus_shared_with") for run in runs}:
        return None
    return f"{name}: the layer's Redis shares its CPU with {_GENERATOR}, which takes time from it"
