"""Evaluation of a source's claims for the measured cells. Pure functions."""

import ast
import math
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from statistics import median
from typing import Any

from lab_settings.messages import shorten
from simpleeval import InvalidExpression, simple_eval

from load_lab.experiments.run_folder import CellRun
from load_lab.machine.cpu_use import CpuUse
from load_lab.metrics.windows import Bounds, Window
from load_lab.results.breakpoint import BreakPoint
from load_lab.results.limit import Limit
from load_lab.results.result import METRICS, CapacityResult, Result, WebSockets
from load_lab.settings import Settings
from load_lab.targets.reference.app import ROUTES

HOLDS, HOLDS_NOT, NOT_MEASURED = "holds", "does not hold", "not measured"
NOT_DECIDED = "not decided"

# A claim is decided if it holds, or does not, in this share of the draws from the cells' repeats.
_DECIDED = 0.95
_DRAWS, _SEED = 200, 20261126
# What a lower bound may be in truth, as a multiple of it.
_HIGHER = (1.01, 1.1, 1.5, 2, 5, 10, 100, 1e6)
# Metrics that are lower bounds if the target did not limit the run, next to those that reports
# compare.
_BOUNDED = {name for name, metric in METRICS.items() if getattr(metric, "bounded", False)} | {
    "broke_at",
    "capacity_low",
    "goodput_mean",
}
ONE_REPEAT = "one repeat"

_BACKEND_OUTCOMES = ("hit", "miss", "unavailable")
_OUTCOMES = {
    "nginx": (
        *("HIT", "MISS", "EXPIRED", "STALE", "UPDATING", "REVALIDATED", "BYPASS"),
        *("REFUSED", "NONE"),
    ),
    "redis": _BACKEND_OUTCOMES,
    "local": _BACKEND_OUTCOMES,
}
# Settings that are numbers.
_NUMBERS = tuple(n for n, field in Settings.model_fields.items() if isinstance(field.default, int))
# Functions of several values.
_AGGREGATES: dict[str, Callable[..., float]] = {
    "min": min,
    "max": max,
    "sum": lambda *values: sum(values),
}
_HOLDS_FUNCTIONS = {"abs": abs, **_AGGREGATES}


class _NotMeasured(Exception):
    """A cell in an expression has no value."""


# What an expression can raise. ArithmeticError depends on the measured values.
_ERRORS = (
    *(InvalidExpression, SyntaxError, TypeError, ValueError, AttributeError, LookupError),
    *(RecursionError, MemoryError),
)


# The measured runs of each cell, by the cell's name.
_Cells = Mapping[str, list[CellRun]]
_Reader = Callable[[Result], float | None]

# As in the reported CPUs of old stacks (load_lab/experiments/legacy).
_GENERATOR = "the load generator"


def evaluate(claims: list[dict[str, Any]], runs: list[CellRun]) -> list[dict[str, Any]]:
    """Return each claim with its verdict, its measured metrics, and notes on their validity."""
    cells, errors = _runs_by_name(runs), _errors(runs)
    return [_claim(claim, cells, errors) for claim in claims]


def deciding_cells(claims: list[dict[str, Any]]) -> set[str]:
    """Return the names of the cells that the claims are about."""
    cell_names: list[str] = []
    for claim in claims:
        with suppress(*_ERRORS):
            for value in _TRIAL_VALUES:
                _try(claim, _TrialCells(value), cell_names)
    return set(cell_names)


def problems(claims: list[dict[str, Any]], names: set[str]) -> list[str]:
    """Return the errors in the expressions, to find them before a run of hours."""
    errors = []
    for claim in claims:
        cell_names: list[str] = []
        try:
            for value in _TRIAL_VALUES:
                _try(claim, _TrialCells(value), cell_names)
        except _ERRORS as error:
            errors.append(f"claim {claim['id']}: {error}")
        errors += [
            f"claim {claim['id']}: no cell {shorten(name)}"
            for name in dict.fromkeys(cell_names)
            if name not in names
        ]
    return errors


# Every metric of the synthetic cells of a trial.
_TRIAL_VALUES = (0, 1, 1000)


class _TrialCells(dict[str, list[CellRun]]):
    """A measured run for every cell, each of whose metrics is `value`."""

    def __init__(self, value: int) -> None:
        super().__init__()
        self._runs = [_trial_run(value)]

    def get(self, _name: str, _default: object = None) -> Any:
        return self._runs


def _trial_run(value: int) -> CellRun:
    metrics: dict[str, Any] = {n: value for n, metric in METRICS.items() if metric.path == (n,)}
    sockets = WebSockets.model_validate(dict.fromkeys(WebSockets.model_fields, value))
    capacity = CapacityResult(rate=value, low=value, high=value)
    result = Result(
        **metrics,
        websockets=sockets,
        capacity=capacity,
        windows=[Window(value, value, value, value, value, value, value, value)],
        break_point=BreakPoint(value, value, value, value, ()),
        cpu=[CpuUse(value, value, value)],
    )
    return CellRun(
        name="any", settings=dict.fromkeys(_NUMBERS, str(value)), state="measured", result=result
    )


def _try(claim: dict[str, Any], cells: _Cells, cell_names: list[str]) -> None:
    """Evaluate a claim and each part of it: a run can take the branch that a trial does not."""
    functions = _functions(cells, cell_names)
    for expression in claim["measures"].values():
        for part in _parts(expression):
            _try_part(part, functions=functions)
        _value(expression, functions)
    values = {name: _value(text, functions) for name, text in claim["measures"].items()}
    if None in values.values():
        return
    for part in _parts(claim["holds"]):
        _try_part(part, names=values, functions=_HOLDS_FUNCTIONS)


def _parts(expression: str) -> Iterator[str]:
    """Yield the expression, and every expression in it but the names of functions."""
    tree = ast.parse(expression.strip(), mode="eval")
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.expr)]
    functions = [node.func for node in nodes if isinstance(node, ast.Call)]
    yield from (ast.unparse(node) for node in nodes if node not in functions)


def _try_part(expression: str, **scope: Any) -> None:
    # A division by zero, for example: the values of a run differ from the trial's.
    with suppress(ArithmeticError):
        simple_eval(expression, **scope)


def _claim(claim: dict[str, Any], cells: _Cells, errors: Mapping[str, str]) -> dict[str, Any]:
    cell_names: list[str] = []
    functions = _functions(cells, cell_names)
    values: dict[str, float | None] = {}
    draws, basis = list[_Draw](), ""
    try:
        for name, expression in claim["measures"].items():
            values[name] = None
            values[name] = _value(expression, functions)
        gaps = _undecided(cell_names, cells, errors)
        verdict, reasons = (NOT_MEASURED, gaps) if gaps else _verdict(claim, values)
        draws = _draws(claim, {name: cells[name] for name in cell_names if name in cells})
        is_judged = verdict in (HOLDS, HOLDS_NOT)
        if is_judged and draws:
            verdict, reasons = _decided(verdict, draws)
        elif is_judged:
            basis = ONE_REPEAT
        if verdict in (HOLDS, HOLDS_NOT) and (open_cells := _open_bounds(claim, verdict, cells)):
            verdict, basis = NOT_DECIDED, ""
            reasons = [f"it depends on how much more {', '.join(open_cells)} can do"]
    except _ERRORS as error:
        # A stored claim that was edited.
        verdict, reasons, cell_names = NOT_MEASURED, [f"It can't be evaluated: {error}"], []
    notes = [*reasons, *_notes(cell_names, cells)]
    return {
        **claim,
        "verdict": verdict,
        "measured": values,
        "intervals": _intervals(values, draws),
        "basis": basis,
        "notes": notes,
    }


@dataclass(frozen=True)
class _Draw:
    """A claim's values, and whether it holds, with repeats drawn at random from those of its cells;
    None where it can't be judged.
    """

    values: dict[str, float | None]
    holds: bool | None


def _draws(claim: dict[str, Any], cells: _Cells) -> list[_Draw]:
    """Return the claim for repeats that are drawn with replacement (a bootstrap over the cells);
    nothing if each cell has one.
    """
    if all(len(runs) < 2 for runs in cells.values()):
        return []
    rng = random.Random(_SEED)  # noqa: S311 - nothing is secret
    return [_draw(claim, cells, rng) for _ in range(_DRAWS)]


def _draw(claim: dict[str, Any], cells: _Cells, rng: random.Random) -> _Draw:
    drawn = {name: rng.choices(runs, k=len(runs)) for name, runs in cells.items()}
    functions = _functions(drawn, [])
    values = {name: _value(text, functions) for name, text in claim["measures"].items()}
    if None in values.values():
        return _Draw(values, None)
    with suppress(*_ERRORS, ArithmeticError):
        return _Draw(values, _holds(claim, values))
    return _Draw(values, None)


def _decided(verdict: str, draws: list[_Draw]) -> tuple[str, list[str]]:
    """Return the verdict if the repeats agree on it."""
    share = sum(draw.holds is True for draw in draws) / len(draws)
    agreement = share if verdict == HOLDS else 1 - share
    if agreement >= _DECIDED:
        return verdict, []
    return NOT_DECIDED, [f"it holds in {share:.0%} of the draws from the repeats"]


def _open_bounds(claim: dict[str, Any], verdict: str, cells: _Cells) -> list[str]:
    """Return the cells whose rates are lower bounds, if the claim's verdict would be another one
    with higher rates of one or all of them.
    """
    bounded = {
        name: runs
        for name, runs in cells.items()
        if any(run.result and run.result.lower_bound for run in runs)
    }
    cases = [(name,) for name in bounded] + ([tuple(bounded)] if len(bounded) > 1 else [])
    for names in cases:
        for factor in _HIGHER:
            functions = _functions(cells, [], dict.fromkeys(names, factor))
            values = {name: _value(text, functions) for name, text in claim["measures"].items()}
            if _verdict(claim, values)[0] not in (verdict, NOT_MEASURED):
                return list(names)
    return []


def _intervals(
    values: dict[str, float | None], draws: list[_Draw]
) -> dict[str, tuple[float, float]]:
    """Return the range of each value in 90 % of the draws."""
    ranges = {}
    for name in values:
        drawn = sorted(v for draw in draws if (v := draw.values[name]) is not None)
        if len(drawn) > 1:
            edge = round(0.05 * (len(drawn) - 1))
            ranges[name] = (drawn[edge], drawn[-1 - edge])
    return ranges


def _verdict(claim: dict[str, Any], values: dict[str, float | None]) -> tuple[str, list[str]]:
    if None in values.values():
        return NOT_MEASURED, []
    try:
        return (HOLDS if _holds(claim, values) else HOLDS_NOT), []
    except (*_ERRORS, ArithmeticError) as error:
        return NOT_MEASURED, [f"`{claim['holds']}` can't be judged: {error}"]


def _holds(claim: dict[str, Any], values: Mapping[str, Any]) -> bool:
    return bool(simple_eval(claim["holds"], names=dict(values), functions=_HOLDS_FUNCTIONS))


def _value(expression: str, functions: dict[str, Callable[..., Any]]) -> float | None:
    """Return the value of an expression; None if a cell in it has none, or it is not finite."""
    try:
        value = float(_number(simple_eval(expression, functions=functions)))
    except (_NotMeasured, ArithmeticError):
        return None
    return round(value, 4) if math.isfinite(value) else None


def _number(value: Any) -> float:
    if not isinstance(value, int | float):
        raise TypeError(f"{shorten(value)!r} is not a number")
    return value


def _functions(
    cells: _Cells, cell_names: list[str], higher: Mapping[str, float] | None = None
) -> dict[str, Callable[..., Any]]:
    """Return functions such as `rps("detail/naive/none")`; each call adds its cell to
    `cell_names`. `higher` has the factors by which lower bounds of cells are raised.
    """

    def median_of(read: _Reader, *, is_bounded: bool = False) -> Callable[[str], float]:
        def value(name: str) -> float:
            factor = (higher or {}).get(name, 1) if is_bounded else 1
            return _median(partial(_raised, read, factor), name, cells, cell_names)

        return value

    metrics = {
        name: median_of(metric.of, is_bounded=name in _BOUNDED) for name, metric in METRICS.items()
    }
    return {
        **_AGGREGATES,
        **metrics,
        "errors_from": median_of(_errors_from),
        "setting": lambda name, variable: _setting(name, variable, cells, cell_names),
        **_parametrized_functions(median_of),
    }


def _raised(read: _Reader, factor: float, result: Result) -> float | None:
    """Return the metric; a lower bound is raised. From 0 on, it is raised too."""
    value = read(result)
    if value is None or result.lower_bound is None:
        return value
    return value * factor + factor - 1


def _setting(name: str, variable: str, cells: _Cells, cell_names: list[str]) -> float:
    """Return the number that a cell ran with as this setting.

    Raises:
        _NotMeasured: no repeat was measured.
    """
    _check_name(variable, _NUMBERS)
    cell_names.append(name)
    values = [run.settings[variable] for run in cells.get(name, []) if run.result]
    if not values:
        raise _NotMeasured(name)
    return float(values[0])


def _median(read: _Reader, name: str, cells: _Cells, cell_names: list[str]) -> float:
    """Return the median of a cell's repeats.

    Raises:
        _NotMeasured: no repeat has a value.
    """
    if not isinstance(name, str):
        raise TypeError(f"{shorten(name)} is not the name of a cell")
    cell_names.append(name)
    results = [run.result for run in cells.get(name, []) if run.result]
    values = [value for result in results if (value := read(result)) is not None]
    if not values:
        raise _NotMeasured(name)
    return median(values)


def _parametrized_functions(
    median_of: Callable[..., Callable[[str], float]],
) -> dict[str, Callable[..., float]]:
    """Return the functions that take more than the name of a cell."""

    def answers(name: str, layer: str, *outcomes: str) -> float:
        for outcome in outcomes:
            _check_name(outcome, _OUTCOMES.get(layer, ()))
        return median_of(lambda result: _answers(result, layer, outcomes))(name)

    def builds(name: str, route: str) -> float:
        _check_name(route, ROUTES)
        return median_of(lambda result: result.builds.get(route, 0))(name)

    def rate_within(name: str, milliseconds: float) -> float:
        return median_of(lambda result: _rate_within(result, milliseconds), is_bounded=True)(name)

    return {"answers": answers, "builds": builds, "rate_within": rate_within}


def _errors_from(result: Result) -> float:
    """Return the rate of the first window above the error limit; 0 if there is none."""
    rates = (w.offered for w in result.windows if w.error_ratio > Bounds().error_ratio)
    return next(rates, 0.0)


def _rate_within(result: Result, milliseconds: float) -> float | None:
    """Return the best goodput before the p95 of a window exceeded this number of milliseconds.

    0 if the first window exceeded it; None for a load without windows.
    """
    windows = result.windows
    within = takewhile(lambda w: w.p95_ms is None or w.p95_ms <= milliseconds, windows)
    return max((w.goodput for w in within), default=0.0) if windows else None


def _check_name(name: str, allowed: tuple[str, ...]) -> None:
    """Check a name, because an unknown one would count as 0.

    Raises:
        ValueError: the name is not allowed.
    """
    if name not in allowed:
        raise ValueError(f"{name} is not known here; known: {', '.join(allowed) or 'nothing'}")


def _answers(result: Result, layer: str, outcomes: tuple[str, ...]) -> float:
    counts = result.cache.get(layer, {})
    return sum(count for outcome, count in counts.items() if outcome in outcomes)


def _runs_by_name(runs: list[CellRun]) -> dict[str, list[CellRun]]:
    groups: dict[str, list[CellRun]] = {}
    for run in runs:
        if run.result:
            groups.setdefault(run.name, []).append(run)
    return groups


def _undecided(cell_names: list[str], cells: _Cells, errors: Mapping[str, str]) -> list[str]:
    """Return the cells that decide nothing: not measured, or without a successful response.

    A cell without a successful response allows no conclusion: a load that missed its target also
    has only zeros.
    """
    gaps = []
    for name in dict.fromkeys(cell_names):
        runs = cells.get(name)
        if not runs:
            gaps.append(f"{name} was not measured{errors.get(name, '')}")
        elif not any(run.result.successes for run in runs if run.result):
            gaps.append(f"{name} gave no successful answer")
    return gaps


def _errors(runs: list[CellRun]) -> dict[str, str]:
    """Return the stored errors of cells, by cell name."""
    return {run.name: f": {run.error}" for run in runs if run.error}


def _notes(cell_names: list[str], cells: _Cells) -> list[str]:
    """Return notes that limit the meaning of the metrics."""
    notes = []
    for name in dict.fromkeys(cell_names):
        runs = cells.get(name, [])
        limits = {run.result.lower_bound for run in runs if run.result}
        notes += [
            f"{name} is limited by {limit.text}: its rates are lower bounds"
            for limit in Limit
            if limit in limits
        ]
        notes += filter(None, (_layer_note(name, runs), _search_note(name, runs)))
    return notes


def _search_note(name: str, runs: list[CellRun]) -> str | None:
    """Return a note if searches for a capacity ended without a confirmation."""
    searches = [run.result.capacity for run in runs if run.result and run.result.capacity]
    unconfirmed = sum(not search.confirmed for search in searches)
    if not unconfirmed:
        return None
    return f"{name}: {unconfirmed} of {len(searches)} capacities were not confirmed"


def _layer_note(name: str, runs: list[CellRun]) -> str | None:
    """Return a note if the channel layer should have a separate CPU, but shares the generator's."""
    if _GENERATOR not in {(run.legacy or {}).get("layer_cpus_shared_with") for run in runs}:
        return None
    return f"{name}: the layer's Redis shares its CPU with {_GENERATOR}, which takes time from it"
