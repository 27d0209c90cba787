"""Runs of a benchmark, one line each in results/: what is there already is not measured again."""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from load_lab.console import note
from load_lab.paths import project

Record = dict[str, Any]


def records(name: str) -> list[Record]:
    """Return the stored runs of a benchmark."""
    path = _path(name)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def missing(name: str, series: str, wanted: int) -> list[int]:
    """Return the numbers of the runs that a series lacks."""
    done = {record["run"] for record in records(name) if record["series"] == series}
    return [number for number in range(wanted) if number not in done]


def each_missing(name: str, series: str, wanted: int) -> Iterator[int]:
    """Yield the numbers of the runs that a series lacks, with a line of progress for each."""
    for number in missing(name, series, wanted):
        note(f"{series}: run {number + 1} of {wanted}")
        yield number


def store(name: str, series: str, number: int, record: Record) -> None:
    path = _path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps({"series": series, "run": number, **record}) + "\n")


def by_series(name: str) -> dict[str, list[Record]]:
    """Return the runs by series, in the order in which the series began."""
    series: dict[str, list[Record]] = {}
    for record in records(name):
        series.setdefault(record["series"], []).append(record)
    return series


def share(values: Iterable[Any], condition: Callable[[Any], bool]) -> float:
    """Return the share of the values that meet a condition; 0 without values."""
    listed = list(values)
    return sum(map(condition, listed)) / len(listed) if listed else 0.0


def _path(name: str) -> Path:
    return project().results / f"bench-{name}.jsonl"
