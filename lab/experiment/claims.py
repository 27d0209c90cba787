"""Whether what a source says holds for what was measured. Pure."""

from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

from simpleeval import InvalidExpression, simple_eval

HOLDS, HOLDS_NOT, NOT_MEASURED = "holds", "does not hold", "not measured"

# What an expression may ask of a cell: the median over its repeats.
_FIGURES = (
    *("rps", "goodput", "goodput_mean", "requests", "failed", "failed_ratio"),
    *("p50_ms", "p95_ms", "p99_ms", "dropped_iterations", "missing_in_prometheus"),
)
_LIMITS = {"generator_cpu": "the generator's CPU", "vu_cap": "the number of virtual users"}


class _NotMeasured(Exception):
    """A cell that an expression asks for has no figure."""


def evaluate(claims: list[dict[str, Any]], cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each claim with its verdict, its measured figures, and what limits their meaning."""
    measured = _by_name(cells)
    return [_claim(claim, measured) for claim in claims]


def problems(claims: list[dict[str, Any]], names: set[str]) -> list[str]:
    """What is wrong with the expressions themselves: checked before hours are spent."""
    found = []
    for claim in claims:
        asked: list[str] = []
        functions = dict.fromkeys(_functions({}, []), _recorder(asked))
        try:
            values = {k: simple_eval(v, functions=functions) for k, v in claim["measures"].items()}
            _holds(claim, values)
        except (InvalidExpression, SyntaxError, TypeError, ZeroDivisionError) as error:
            found.append(f"claim {claim['id']}: {error}")
        found += [f"claim {claim['id']}: no cell {name}" for name in asked if name not in names]
    return found


def _claim(claim: dict[str, Any], cells: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
    asked: list[str] = []
    functions = _functions(cells, asked)
    measured = {k: _value(v, functions) for k, v in claim["measures"].items()}
    verdict = NOT_MEASURED
    if None not in measured.values():
        verdict = HOLDS if _holds(claim, measured) else HOLDS_NOT
    return {**claim, "verdict": verdict, "measured": measured, "notes": _notes(asked, cells)}


def _holds(claim: dict[str, Any], measured: Mapping[str, Any]) -> bool:
    functions = {"abs": abs, "min": min, "max": max}
    return bool(simple_eval(claim["holds"], names=dict(measured), functions=functions))


def _value(expression: str, functions: dict[str, Callable[..., Any]]) -> float | None:
    try:
        return round(float(simple_eval(expression, functions=functions)), 4)
    except (_NotMeasured, ZeroDivisionError):
        return None


def _functions(
    cells: Mapping[str, list[dict[str, Any]]], asked: list[str]
) -> dict[str, Callable[..., Any]]:
    """`rps("naive/none/detail")` and the like, which note what they were asked for."""

    def of(read: Callable[[dict[str, Any]], float | None]) -> Callable[[str], float]:
        def figure(name: str) -> float:
            asked.append(name)
            values = [value for cell in cells.get(name, []) if (value := read(cell)) is not None]
            if not values:
                raise _NotMeasured(name)
            return median(values)

        return figure

    def answers(name: str, layer: str, *outcomes: str) -> float:
        return of(lambda cell: _answers(cell, layer, outcomes))(name)

    def builds(name: str, route: str) -> float:
        return of(lambda cell: cell["builds"].get(route, 0))(name)

    figures = {name: of(lambda cell, name=name: cell[name]) for name in _FIGURES}  # type: ignore[misc]
    return {**figures, "builds": builds, "broke_at": of(_broke_at), "answers": answers}


def _broke_at(cell: dict[str, Any]) -> float | None:
    """The rate at which it broke; none for a cell that held."""
    return cell["break_point"]["offered"] if cell["break_point"] else None


def _answers(cell: dict[str, Any], layer: str, outcomes: tuple[str, ...]) -> float:
    counts: dict[str, float] = cell["cache"].get(layer, {})
    return sum(count for outcome, count in counts.items() if outcome in outcomes)


def _notes(asked: list[str], cells: Mapping[str, list[dict[str, Any]]]) -> list[str]:
    """Cells whose figure is not the target's limit."""
    found = []
    for name in dict.fromkeys(asked):
        limits = {cell["limited_by"] for cell in cells.get(name, [])} & set(_LIMITS)
        found += [
            f"{name} is limited by {_LIMITS[limit]}: its rates are lower bounds"
            for limit in sorted(limits)
        ]
    return found


def _by_name(cells: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for cell in cells:
        if cell["state"] == "measured":
            found.setdefault(cell["name"], []).append(cell)
    return found


def _recorder(asked: list[str]) -> Callable[..., float]:
    def figure(name: str, *_: str) -> float:
        asked.append(name)
        return 1.0

    return figure
