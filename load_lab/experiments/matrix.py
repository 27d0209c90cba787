"""The cells of an experiment, and the order in which they are measured. Pure functions."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import reduce
from itertools import product
from typing import Any, Literal

from lab_settings.durations import seconds
from lab_settings.messages import problem
from pydantic import ValidationError

from load_lab.capacity.measurement import LAST_SECONDS, MIN_BUDGET_SECONDS
from load_lab.experiments.schema import (
    Experiment,
    Legacy,
    Quick,
    Tune,
    Variant,
    Warm,
    When,
    Workload,
)
from load_lab.load import Scenario
from load_lab.load.workloads import WRITING_SCENARIOS
from load_lab.results.arms import alternate
from load_lab.results.result import CAPACITY
from load_lab.targets.file import Variation

# Time for a cell in addition to its load: settings, database, caches, verification, readback. This
# and the next three are for an idle machine; they grow with its slowness.
OVERHEAD_SECONDS = 8
# Additional time to copy the database.
RESET_SECONDS = 5
# Time to build one detail page, by LAB_DETAIL.
BUILD_SECONDS = {"naive": 0.8, "fast": 0.05}
# Details that are built to verify a cache, to visit or book every page, and by a load that warms a
# cache: some of them twice, as long as the cache is cold.
VERIFIED_DETAILS, ALL_DETAILS, WARM_DETAILS = 3, 20, 40
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
    # What it changes of a target of the user's own; None for the reference app.
    target: Variation | None = None
    # Whether the load writes, so that the database must be restored.
    reset: Literal["database", "nothing"] = "database"

    def expected_seconds(self, slowness: float = 1.0) -> float:
        """Return the expected duration, on a machine `slowness` times as slow as an idle one."""
        build = slowness * BUILD_SECONDS[self.settings.get("LAB_DETAIL", "naive")]
        delays = LATENCY_TRIPS * int(self.settings.get("LAB_LATENCY_MS", 0)) / 1000
        # A slow machine works off what a load has left before the next step begins.
        loads = sum(max(length, build * details) for length, details in self._loads())
        reset = RESET_SECONDS if self.reset == "database" else 0
        return delays + loads + slowness * (OVERHEAD_SECONDS + reset) + build * self._details

    def _loads(self) -> Iterator[tuple[float, int]]:
        """Yield the length of each load in seconds, and how many details it has built."""
        if isinstance(self.warm, Workload):
            yield seconds(self.warm.duration), WARM_DETAILS
        # The article's warm profile has an additional first minute.
        stage = 60 if self.workload.profile == "article-breakpoint-warm" else 0
        is_cold = self.warm == "none" and self.workload.scenario == "detail"
        after = LAST_SECONDS if self.workload.profile == CAPACITY else 0
        yield stage + seconds(self.workload.duration) + after, ALL_DETAILS if is_cold else 0

    @property
    def _details(self) -> int:
        """Return how many details are built besides the loads'."""
        names = ("LAB_LOCAL_CACHE", "LAB_REDIS_CACHE", "LAB_NGINX_CACHE")
        is_cached = any(self.settings.get(name, "off") != "off" for name in names)
        books = self.workload.scenario in WRITING_SCENARIOS
        return (
            (VERIFIED_DETAILS if is_cached else 0)
            + (ALL_DETAILS if self.warm == "pages" else 0)
            + (ALL_DETAILS if books else 0)
        )


def cells(experiment: Experiment) -> list[Cell]:
    """Return every cell to measure, in the order of the axes.

    Raises:
        ValueError: a combination has no workload.
    """
    return [
        _cell(experiment, combination)
        for combination in _combinations(experiment)
        if not any(_matches(rule.when, combination) for rule in experiment.exclude)
    ]


def exclusions(experiment: Experiment) -> list[dict[str, Any]]:
    """Return each exclude rule's reason, and the cells that it excludes."""
    names = {rule.because: [] for rule in experiment.exclude}  # type: dict[str, list[str]]
    for combination in _combinations(experiment):
        rule = next((r for r in experiment.exclude if _matches(r.when, combination)), None)
        if rule is not None:
            names[rule.because].append("/".join(combination.values()))
    return [{"cells": members, "because": because} for because, members in names.items()]


def order(
    cells: Sequence[Cell], repeats: int, repeated: Collection[str] = ()
) -> list[tuple[Cell, int]]:
    """Return rounds over all cells, so that drift affects every cell; every second one reversed.

    If `repeated` names cells, the others are only in the first round.
    """
    return [
        (cell, n)
        for n in range(1, repeats + 1)
        for cell in alternate(cells, n - 1)
        if n == 1 or not repeated or cell.name in repeated
    ]


def shorten(cell: Cell, limits: Quick | None = None) -> Cell:
    """Return the cell with shorter loads: for a preview, not for a result."""
    warm = cell.warm if isinstance(cell.warm, str) else _shorter(cell.warm, limits)
    return replace(cell, workload=_shorter(cell.workload, limits), warm=warm)


def fits(cell: Cell, pattern: str) -> bool:
    """Return whether the pattern matches the cell's name, or is the name of one position."""
    return fnmatchcase(cell.name, pattern) or pattern in cell.axes.values()


def select(cells: Sequence[Cell], patterns: Sequence[str]) -> list[Cell]:
    """Return the cells that match at least one of the patterns."""
    return [cell for cell in cells if any(fits(cell, pattern) for pattern in patterns)]


def _shorter(workload: Workload, limits: Quick | None) -> Workload:
    duration = seconds(workload.duration)
    max_duration = (
        seconds(limits.duration) if limits else max(duration / _QUICK_SHARE, _QUICK_SHORTEST)
    )
    if workload.profile == CAPACITY:
        max_duration = MIN_BUDGET_SECONDS
    return workload.model_copy(update={"duration": f"{min(duration, max_duration):.0f}s"})


def _combinations(experiment: Experiment) -> Iterator[dict[str, str]]:
    names = [axis.name for axis in experiment.axis]
    for values in product(*(axis.positions for axis in experiment.axis)):
        yield dict(zip(names, values, strict=True))


def _cell(experiment: Experiment, combination: dict[str, str]) -> Cell:
    variants = [axis.positions[combination[axis.name]] for axis in experiment.axis]
    tunes = [rule for rule in experiment.tune if _matches(rule.when, combination)]
    name = "/".join(combination.values())
    settings = dict(experiment.settings)
    for variant in variants:
        settings |= variant.settings
    return Cell(
        name=name,
        title=", ".join(variant.title for variant in variants),
        axes=combination,
        settings={key: str(value) for key, value in settings.items()},
        workload=_workload(name, variants, tunes, Scenario.REPLAY if experiment.target else None),
        warm=_warm(variants, tunes),
        legacy=_legacy(name, variants),
        target=_variation(variants) if experiment.target else None,
        reset=_reset(experiment, variants),
    )


def _variation(variants: list[Variant]) -> Variation:
    parts = [variant.target for variant in variants if variant.target]
    return reduce(Variation.then, parts, Variation())


def _reset(experiment: Experiment, variants: list[Variant]) -> Literal["database", "nothing"]:
    if experiment.target:
        return "nothing"
    return next((p.reset for p in reversed(variants) if p.reset), "database")


def _workload(
    name: str, variants: list[Variant], tunes: list[Tune], scenario: Scenario | None
) -> Workload:
    """Merge the workload: later axes override earlier ones, and tunes override the axes."""
    workloads = [p.workload for p in variants if p.workload]
    if not workloads:
        raise ValueError(f"cell {name} has no workload: give one to a position of some axis")
    parts: dict[str, Any] = {"scenario": scenario} if scenario else {}
    for override in (*workloads, *tunes):
        parts |= override.model_dump(exclude_none=True, exclude={"when", "warm"})
    missing = [key for key in ("profile", "scenario", "duration") if key not in parts]
    if missing:
        raise ValueError(f"the workload of cell {name} lacks {', '.join(missing)}")
    try:
        return Workload(**parts)
    except ValidationError as error:
        raise ValueError(f"the workload of cell {name}: {problem(error.errors()[0])}") from None


def _warm(variants: list[Variant], tunes: list[Tune]) -> Warm:
    warm_ups = [*(variant.warm for variant in variants), *(rule.warm for rule in tunes)]
    return next((warm for warm in reversed(warm_ups) if warm), "none")


def _legacy(name: str, variants: list[Variant]) -> Legacy | None:
    fields: dict[str, str] = {}
    for variant in variants:
        fields |= variant.legacy.model_dump(exclude_none=True) if variant.legacy else {}
    if "stack" not in fields:
        return None
    if "arm" not in fields:
        raise ValueError(f"cell {name} names the old stack {fields['stack']}, but no arm of it")
    return Legacy(**fields)


def _matches(when: When, combination: dict[str, str]) -> bool:
    return all(combination[axis] in names for axis, names in when.items())
