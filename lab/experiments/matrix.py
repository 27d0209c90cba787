"""The cells of an experiment, and the order in which they are measured. Pure functions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import product
from typing import Any, Literal

from lab_settings.durations import seconds

from lab.experiments.schema import (
    Experiment,
    Legacy,
    Quick,
    Tune,
    Variant,
    Warm,
    When,
    Workload,
)

# Time for a cell in addition to its load: settings, database, caches, verification, readback.
OVERHEAD_SECONDS = 8
# Additional time to copy the database.
RESET_SECONDS = 5
# Round trips with the cell's latency before its load: to start the stack, and to measure the delay.
LATENCY_TRIPS = 60

_QUICK_SHARE = 6
_QUICK_SHORTEST = 10


@dataclass(frozen=True)
class Cell:
    """One combination of positions: its settings, warm-up and load."""

    name: str
    title: str
    axes: dict[str, str]
    settings: dict[str, str]
    workload: Workload
    warm: Warm
    # The old stack's arm that serves the load; None for the current stack.
    legacy: Legacy | None = None
    # Whether the load writes, so that the database must be restored.
    reset: Literal["database", "nothing"] = "database"

    @property
    def expected_seconds(self) -> float:
        """Return the expected duration of the whole cell."""
        warm = seconds(self.warm.duration) if isinstance(self.warm, Workload) else 0
        # The article's warm profile has an additional first minute.
        stage = 60 if self.workload.profile == "article-breakpoint-warm" else 0
        reset = RESET_SECONDS if self.reset == "database" else 0
        delays = LATENCY_TRIPS * int(self.settings.get("LAB_LATENCY_MS", 0)) / 1000
        load = seconds(self.workload.duration)
        return OVERHEAD_SECONDS + reset + delays + warm + stage + load


def cells(experiment: Experiment) -> list[Cell]:
    """Return every cell to measure, in the order of the axes.

    Raises:
        ValueError: a combination has no workload.
    """
    return [
        _cell(experiment, chosen)
        for chosen in _combinations(experiment)
        if not any(_matches(rule.when, chosen) for rule in experiment.exclude)
    ]


def exclusions(experiment: Experiment) -> list[dict[str, Any]]:
    """Return each exclude rule's reason, and the cells that it excludes."""
    names = {rule.because: [] for rule in experiment.exclude}  # type: dict[str, list[str]]
    for chosen in _combinations(experiment):
        rule = next((r for r in experiment.exclude if _matches(r.when, chosen)), None)
        if rule is not None:
            names[rule.because].append("/".join(chosen.values()))
    return [{"cells": found, "because": because} for because, found in names.items()]


def order(found: Sequence[Cell], repeats: int) -> list[tuple[Cell, int]]:
    """Return rounds over all cells, so that drift affects every cell; every second one reversed."""
    rounds = (found if n % 2 else found[::-1] for n in range(1, repeats + 1))
    return [(cell, n) for n, one in enumerate(rounds, start=1) for cell in one]


def shorten(cell: Cell, how: Quick | None = None) -> Cell:
    """Return the cell with shorter loads: for a preview, not for a result."""
    warm = cell.warm if isinstance(cell.warm, str) else _shorter(cell.warm, how)
    return replace(cell, workload=_shorter(cell.workload, how), warm=warm)


def fits(cell: Cell, pattern: str) -> bool:
    """Return whether the pattern matches the cell's name, or is the name of one position."""
    return fnmatchcase(cell.name, pattern) or pattern in cell.axes.values()


def chosen(found: Sequence[Cell], patterns: Sequence[str]) -> list[Cell]:
    """Return the cells that match at least one of the patterns."""
    return [cell for cell in found if any(fits(cell, pattern) for pattern in patterns)]


def _shorter(workload: Workload, how: Quick | None) -> Workload:
    full = seconds(workload.duration)
    most = seconds(how.duration) if how else max(full / _QUICK_SHARE, _QUICK_SHORTEST)
    return workload.model_copy(update={"duration": f"{min(full, most):.0f}s"})


def _combinations(experiment: Experiment) -> Iterator[dict[str, str]]:
    names = [axis.name for axis in experiment.axis]
    for chosen in product(*(axis.positions for axis in experiment.axis)):
        yield dict(zip(names, chosen, strict=True))


def _cell(experiment: Experiment, chosen: dict[str, str]) -> Cell:
    positions = [axis.positions[chosen[axis.name]] for axis in experiment.axis]
    tunes = [rule for rule in experiment.tune if _matches(rule.when, chosen)]
    name = "/".join(chosen.values())
    settings = dict(experiment.settings)
    for position in positions:
        settings |= position.settings
    return Cell(
        name=name,
        title=", ".join(position.title for position in positions),
        axes=chosen,
        settings={key: str(value) for key, value in settings.items()},
        workload=_workload(name, positions, tunes),
        warm=_warm(positions, tunes),
        legacy=_legacy(name, positions),
        reset=next((p.reset for p in reversed(positions) if p.reset), "database"),
    )


def _workload(name: str, positions: list[Variant], tunes: list[Tune]) -> Workload:
    """Merge the workload: later axes override earlier ones, and tunes override the axes."""
    said = [p.workload for p in positions if p.workload]
    if not said:
        raise ValueError(f"cell {name} has no workload: give one to a position of some axis")
    parts: dict[str, Any] = {}
    for each in (*said, *tunes):
        parts |= each.model_dump(exclude_none=True, exclude={"when", "warm"})
    missing = [key for key in ("profile", "scenario", "duration") if key not in parts]
    if missing:
        raise ValueError(f"the workload of cell {name} lacks {', '.join(missing)}")
    return Workload(**parts)


def _warm(positions: list[Variant], tunes: list[Tune]) -> Warm:
    said = [*(position.warm for position in positions), *(rule.warm for rule in tunes)]
    return next((warm for warm in reversed(said) if warm), "none")


def _legacy(name: str, positions: list[Variant]) -> Legacy | None:
    said: dict[str, str] = {}
    for position in positions:
        said |= position.legacy.model_dump(exclude_none=True) if position.legacy else {}
    if "stack" not in said:
        return None
    if "arm" not in said:
        raise ValueError(f"cell {name} names the old stack {said['stack']}, but no arm of it")
    return Legacy(**said)


def _matches(when: When, chosen: dict[str, str]) -> bool:
    return all(chosen[axis] in wanted for axis, wanted in when.items())
