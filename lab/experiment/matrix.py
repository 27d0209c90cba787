"""From an experiment to its cells, and the order in which they are measured. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from lab.durations import seconds
from lab.experiment.schema import Experiment, Position, Tune, Warm, When, Workload

# What a cell takes beside its load: settings, database, caches, verification, reading back.
OVERHEAD_SECONDS = 25

_QUICK_SHARE = 6
_QUICK_SHORTEST = 10


@dataclass(frozen=True)
class Cell:
    """One combination of positions: what is set, how it is warmed and how it is loaded."""

    name: str
    title: str
    axes: dict[str, str]
    settings: dict[str, str]
    workload: Workload
    warm: Warm

    @property
    def expected_seconds(self) -> float:
        """How long it should take in all."""
        warm = seconds(self.warm.duration) if isinstance(self.warm, Workload) else 0
        # The article's warm profile has a first minute of its own.
        stage = 60 if self.workload.profile == "article-breakpoint-warm" else 0
        return OVERHEAD_SECONDS + warm + stage + seconds(self.workload.duration)


def cells(experiment: Experiment) -> list[Cell]:
    """Every cell that is to be measured, in the order of the axes.

    Raises:
        ValueError: a combination has no workload.
    """
    return [
        _cell(experiment, chosen)
        for chosen in _combinations(experiment)
        if not any(_matches(rule.when, chosen) for rule in experiment.exclude)
    ]


def excluded(experiment: Experiment) -> list[dict[str, Any]]:
    """For each rule its reason, and the cells that it takes out."""
    names = {rule.because: [] for rule in experiment.exclude}  # type: dict[str, list[str]]
    for chosen in _combinations(experiment):
        rule = next((r for r in experiment.exclude if _matches(r.when, chosen)), None)
        if rule is not None:
            names[rule.because].append("/".join(chosen.values()))
    return [{"cells": found, "because": because} for because, found in names.items()]


def order(found: Sequence[Cell], repeats: int) -> list[tuple[Cell, int]]:
    """Rounds, so that what drifts with time meets every cell; every other one backwards."""
    rounds = (found if n % 2 else found[::-1] for n in range(1, repeats + 1))
    return [(cell, n) for n, one in enumerate(rounds, start=1) for cell in one]


def quick(cell: Cell) -> Cell:
    """The same cell with durations scaled down: for a look, not for a figure."""
    warm = cell.warm if isinstance(cell.warm, str) else _shorter(cell.warm)
    return Cell(**{**vars(cell), "workload": _shorter(cell.workload), "warm": warm})


def _shorter(workload: Workload) -> Workload:
    full = seconds(workload.duration)
    scaled = min(full, max(full / _QUICK_SHARE, _QUICK_SHORTEST))
    return workload.model_copy(update={"duration": f"{scaled:.0f}s"})


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
    )


def _workload(name: str, positions: list[Position], tunes: list[Tune]) -> Workload:
    workload = next((p.workload for p in reversed(positions) if p.workload), None)
    if workload is None:
        raise ValueError(f"cell {name} has no workload: give one to a position of some axis")
    for rule in tunes:
        workload = workload.model_copy(update=_parts(rule))
    return workload


def _warm(positions: list[Position], tunes: list[Tune]) -> Warm:
    said = [*(position.warm for position in positions), *(rule.warm for rule in tunes)]
    return next((warm for warm in reversed(said) if warm), "none")


def _parts(rule: Tune) -> dict[str, Any]:
    parts = {"profile": rule.profile, "rate": rule.rate, "duration": rule.duration}
    return {name: value for name, value in parts.items() if value is not None}


def _matches(when: When, chosen: dict[str, str]) -> bool:
    return all(chosen[axis] in wanted for axis, wanted in when.items())
