"""What costs most in a profile: functions by their samples, statements by their time. Pure."""

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from load_lab.profile.flamegraph import HotFunction
from load_lab.targets.statements import Statement

# With fewer samples the ten functions would be random.
MIN_SAMPLES = 20
_FUNCTIONS, _OWN_FUNCTIONS, _STATEMENTS = 10, 5, 5
# The columns of a long statement, of which its beginning and the rest tell more.
_COLUMNS = re.compile(r"^(SELECT .{20}).+?( FROM )")
_MOST_SHOWN = 140


def function_rows(functions: Sequence[HotFunction], samples: int) -> list[dict[str, Any]]:
    """Return the functions with the most samples; none if there are too few."""
    if samples < MIN_SAMPLES:
        return []
    return [shares(function, samples) for function in functions[:_FUNCTIONS]]


def own_rows(
    functions: Sequence[HotFunction], samples: int, is_own: Callable[[str], bool]
) -> list[dict[str, Any]]:
    """Return the functions of the app's own files with the most samples, callees included."""
    own = (f for f in functions if is_own(f.where.rpartition(":")[0]) and f.function != "<module>")
    return function_rows(sorted(own, key=lambda f: -f.all_samples)[:_OWN_FUNCTIONS], samples)


def shares(function: HotFunction, samples: int) -> dict[str, Any]:
    """Return the shares of all samples, in percent."""
    percent = {
        "self_percent": round(function.self_samples / samples * 100, 1),
        "cumulative_percent": round(function.all_samples / samples * 100, 1),
    }
    return percent | {name: asdict(function)[name] for name in ("function", "where")}


def statement_rows(
    statements: Sequence[Statement], requests: int, mean_ms: float
) -> list[dict[str, Any]]:
    """Return what the first statements cost a request, which takes `mean_ms`; `percent` of it."""
    rows = [
        {
            "statement": " ".join(each.text.split()),
            "calls_per_request": round(each.calls / requests, 2),
            "ms_per_request": round(each.ms / requests, 3),
            "percent": round(100 * each.ms / requests / mean_ms, 1),
        }
        for each in statements[:_STATEMENTS]
    ]
    return [row for row in rows if row["ms_per_request"]]


def shown(statement: str) -> str:
    """Return a statement as one short line."""
    if len(statement) <= _MOST_SHOWN:
        return statement
    short = _COLUMNS.sub(r"\1…\2", statement)
    return short if len(short) <= _MOST_SHOWN else f"{short[:_MOST_SHOWN]}…"


def headline(
    what: str, functions: Sequence[dict[str, Any]], statements: Sequence[dict[str, Any]]
) -> str:
    """Return in one line the function and the statement that cost most."""
    parts = [
        f"{each['function']} ({each['where']}) has {each['self_percent']:.0f} % of the samples"
        for each in functions[:1]
    ]
    parts += [
        f"{each['calls_per_request']:g} × {shown(each['statement'])} per request: "
        f"{each['ms_per_request']:g} ms in Postgres, {each['percent']:g} % of its time"
        for each in statements[:1]
    ]
    return f"{what}: {'; '.join(parts)}"
