"""Whether what a source says holds for what was measured. Pure."""

from collections.abc import Callable, Mapping
from itertools import takewhile
from statistics import median
from typing import Any

from simpleeval import InvalidExpression, simple_eval

from lab.analysis.breakpoint import Bounds
from lab.analysis.figures import OF_WEBSOCKETS, broke_at, figure_of
from lab.experiments.claim_notes import gaps, notes, reasons

HOLDS, HOLDS_NOT, NOT_MEASURED = "holds", "does not hold", "not measured"

# What an expression may ask of a cell: the median over its repeats.
_FIGURES = (
    *("rps", "goodput", "goodput_mean", "requests", "failed", "failed_ratio"),
    "answers_per_second",
    *("p50_ms", "p90_ms", "p95_ms", "p99_ms", "dropped_iterations", "missing_in_prometheus"),
    *("hotels", "successes", "max_rps", "memory_peak_bytes", "steal", "cpu_speed"),
    *OF_WEBSOCKETS,
)
_ROUTES = ("hotel_list", "hotel_detail")
_OF_BACKEND = ("hit", "miss", "unavailable")
_OUTCOMES = {
    "nginx": ("HIT", "MISS", "EXPIRED", "STALE", "UPDATING", "REVALIDATED", "BYPASS", "NONE"),
    "redis": _OF_BACKEND,
    "local": _OF_BACKEND,
}
# Over several figures.
_OVER: dict[str, Callable[..., float]] = {
    "min": min,
    "max": max,
    "sum": lambda *values: sum(values),
}


class _NotMeasured(Exception):
    """A cell that an expression asks for has no figure."""


def evaluate(claims: list[dict[str, Any]], cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each claim with its verdict, its measured figures, and what limits their meaning."""
    measured, missing = _by_name(cells), reasons(cells)
    return [_claim(claim, measured, missing) for claim in claims]


def problems(claims: list[dict[str, Any]], names: set[str]) -> list[str]:
    """What is wrong with the expressions themselves: checked before hours are spent."""
    found = []
    for claim in claims:
        asked: list[str] = []
        functions = _functions(_Anything(), asked)
        try:
            values = {k: simple_eval(v, functions=functions) for k, v in claim["measures"].items()}
            _holds(claim, values)
        except ZeroDivisionError:
            pass  # of the trial's figures; those of a run may be others
        except (InvalidExpression, SyntaxError, TypeError, ValueError) as error:
            found.append(f"claim {claim['id']}: {error}")
        found += [f"claim {claim['id']}: no cell {name}" for name in asked if name not in names]
    return found


class _Anything(dict[str, list[dict[str, Any]]]):
    """A cell of every name, for a trial."""

    def get(self, _name: str, _default: object = None) -> Any:
        figures = dict.fromkeys(_FIGURES, 1.0)
        point = {"rate": 1.0, "offered": 1.0}
        window = {"error_ratio": 1.0, "offered": 1.0, "p95_ms": 1.0, "goodput": 1.0}
        sockets = {"websockets": dict.fromkeys(OF_WEBSOCKETS.values(), 1.0)}
        counted = {"builds": {}, "cache": {}, "break_point": point, "windows": [window]}
        return [{**figures, **sockets, **counted}]


def _claim(
    claim: dict[str, Any], cells: Mapping[str, list[dict[str, Any]]], missing: Mapping[str, str]
) -> dict[str, Any]:
    asked: list[str] = []
    functions = _functions(cells, asked)
    measured = {k: _value(v, functions) for k, v in claim["measures"].items()}
    silent = gaps(asked, cells, missing)
    verdict, why = (NOT_MEASURED, silent) if silent else _verdict(claim, measured)
    said = [*why, *notes(asked, cells)]
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


_Cells = Mapping[str, list[dict[str, Any]]]
_Figure = Callable[[dict[str, Any]], float | None]


def _functions(cells: _Cells, asked: list[str]) -> dict[str, Callable[..., Any]]:
    """`rps("detail/naive/none")` and the like, which note what they were asked for."""

    def of(read: _Figure) -> Callable[[str], float]:
        return lambda name: _median(read, name, cells, asked)

    figures = {name: of(lambda cell, name=name: figure_of(cell, name)) for name in _FIGURES}  # type: ignore[misc]
    more = {"broke_at": of(broke_at), "errors_from": of(_errors_from)}
    return {**_OVER, **figures, **more, **_with_parameters(of)}


def _median(read: _Figure, name: str, cells: _Cells, asked: list[str]) -> float:
    """Of the repeats of a cell.

    Raises:
        _NotMeasured: none has the figure.
    """
    asked.append(name)
    values = [value for cell in cells.get(name, []) if (value := read(cell)) is not None]
    if not values:
        raise _NotMeasured(name)
    return median(values)


def _with_parameters(
    of: Callable[[_Figure], Callable[[str], float]],
) -> dict[str, Callable[..., float]]:
    """Figures that are asked for with more than the name of a cell."""

    def answers(name: str, layer: str, *outcomes: str) -> float:
        for outcome in outcomes:
            _known(outcome, _OUTCOMES.get(layer, ()))
        return of(lambda cell: _answers(cell, layer, outcomes))(name)

    def builds(name: str, route: str) -> float:
        _known(route, _ROUTES)
        return of(lambda cell: cell["builds"].get(route, 0))(name)

    def rate_within(name: str, milliseconds: float) -> float:
        return of(lambda cell: _rate_within(cell, milliseconds))(name)

    return {"answers": answers, "builds": builds, "rate_within": rate_within}


def _errors_from(cell: dict[str, Any]) -> float:
    """The rate of the first window with more errors than a run may have; 0 when there was none."""
    broken = (w["offered"] for w in cell["windows"] if w["error_ratio"] > Bounds().error_ratio)
    return next(broken, 0.0)


def _rate_within(cell: dict[str, Any], milliseconds: float) -> float | None:
    """The most answers in time per second before p95 of a window passed that many milliseconds.

    0 when the first window passed it; none for a load without windows.
    """
    windows = cell["windows"]
    within = takewhile(lambda w: w["p95_ms"] is None or w["p95_ms"] <= milliseconds, windows)
    return max((w["goodput"] for w in within), default=0.0) if windows else None


def _known(name: str, allowed: tuple[str, ...]) -> None:
    """Raises:
    ValueError: a misspelt name would count as nothing.
    """
    if name not in allowed:
        raise ValueError(f"{name} is not known here; known: {', '.join(allowed) or 'nothing'}")


def _answers(cell: dict[str, Any], layer: str, outcomes: tuple[str, ...]) -> float:
    counts: dict[str, float] = cell["cache"].get(layer, {})
    return sum(count for outcome, count in counts.items() if outcome in outcomes)


def _by_name(cells: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for cell in cells:
        if cell["state"] == "measured":
            found.setdefault(cell["name"], []).append(cell)
    return found
