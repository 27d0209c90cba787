"""Schema of an experiment's file. docs/experiments/README.md describes it for authors."""

import math
from typing import Annotated, Any, Literal

from lab_settings.durations import PATTERN, seconds
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from load_lab.capacity.measurement import MIN_BUDGET_SECONDS
from load_lab.load import Profile, Scenario
from load_lab.results.result import CAPACITY, COMPARED
from load_lab.targets.file import Variation
from load_lab.targets.reference.app import Entry

SCHEMA_VERSION = 1

# Keys of a position that only the reference app has.
_REFERENCE_KEYS = frozenset({"settings", "legacy", "reset"})

# What a search for the capacity takes.
_SEARCH_KEYS = {"profile", "scenario", "duration", "entry", "only", "bound_ms"}

# A week of cells of a minute: a larger product of axes is a mistake, and would fill the memory.
_MAX_CELLS = 10_000


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Name = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
LegacyName = Annotated[str, Field(pattern=r"^[a-z0-9]+([-.][a-z0-9]+)*$")]
Duration = Annotated[str, Field(pattern=PATTERN)]


def _check_metric(name: str) -> str:
    if name not in COMPARED:
        raise ValueError(f"cells can't be compared by {name}; known: {', '.join(COMPARED)}")
    return name


# The metric by which a report compares its cells.
MetricName = Annotated[str, AfterValidator(_check_metric)]
# Of a claim; load_lab/experiments/claims.py evaluates it.
Expression = Annotated[str, Field(max_length=2000)]
# Positions by axis: {layer = ["none", "local"], load = "detail"}.
When = dict[str, Annotated[list[str], BeforeValidator(_as_list)]]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class _Options(_Table):
    """Options of a load. k6/README.md lists which of them a profile or scenario accepts.

    The ranges are those of k6/, so that a file is rejected before anything starts.
    """

    rate: Annotated[int, Field(ge=1, le=100_000)] | None = None
    vus: Annotated[int, Field(ge=1, le=1000)] | None = None
    # With arrivals: the maximum number of concurrent requests. More than the generator can handle
    # only makes it slower.
    max_vus: Annotated[int, Field(ge=1, le=50_000)] | None = None
    # For the scenario `workbench`: its route.
    route: Annotated[str, Field(pattern=r"^[a-z0-9_]+$")] | None = None
    # For the scenario `availability`: the number of WebSockets.
    connections: Annotated[int, Field(ge=1, le=20_000)] | None = None
    # Maximum number of retries of a failed request.
    retries: Annotated[int, Field(ge=0, le=10)] | None = None
    # For a target: a pattern of names of operations, and the speed of a log with times.
    only: Annotated[str, Field(min_length=1)] | None = None
    speed: Annotated[float, Field(gt=0, le=1000)] | None = None
    # A slower response is of no use; a ramp breaks when p95 exceeds this. Default: 1000.
    bound_ms: Annotated[int, Field(ge=1, le=3_600_000)] | None = None


class Workload(_Options):
    """A load of k6/main.js, or a search for the capacity within `bound_ms`, of which `duration` is
    the budget. A ramp needs a duration, so that the run's length is known.
    """

    profile: Profile | Literal["capacity"]
    scenario: Scenario
    duration: Duration
    entry: Entry = "nginx"

    @model_validator(mode="after")
    def _search_has_its_own_rates(self) -> "Workload":
        if self.profile != CAPACITY:
            return self
        unknown = self.model_fields_set - _SEARCH_KEYS
        if unknown:
            raise ValueError(f"a search for the capacity has no {min(unknown)}")
        if seconds(self.duration) < MIN_BUDGET_SECONDS:
            raise ValueError(
                f"{self.duration} is too short a search for the capacity: "
                f"{MIN_BUDGET_SECONDS}s is the least"
            )
        return self


class Parts(_Options):
    """Parts of a workload; the axes and tunes of a cell together make a complete one."""

    profile: Profile | Literal["capacity"] | None = None
    scenario: Scenario | None = None
    duration: Duration | None = None
    entry: Entry | None = None


class Legacy(_Table):
    """An arm of a pinned old stack in experiments/legacy/, which serves the load.

    One axis may set the stack and another the arm; without a stack the current one serves the load.
    """

    stack: LegacyName | None = None
    arm: LegacyName | None = None


def _not_a_search(warm: Workload) -> Workload:
    if warm.profile == CAPACITY:
        raise ValueError("a search for the capacity is no warm-up")
    return warm


# Between empty caches and the load: nothing, each page once, or a load.
Warm = Literal["none", "pages"] | Annotated[Workload, AfterValidator(_not_a_search)]


class Variant(_Table):
    """One position of an axis. If several positions set the same key, the last axis wins."""

    title: str
    settings: dict[str, str | int] = {}
    workload: Parts | None = None
    warm: Warm | None = None
    legacy: Legacy | None = None
    # How it differs from the experiment's target.
    target: Variation | None = None
    # What to restore after the load: the database, or nothing if the load writes nothing.
    reset: Literal["database", "nothing"] | None = None


class Axis(_Table):
    name: Name
    positions: Annotated[dict[Name, Variant], Field(min_length=1)]


class Exclusion(_Table):
    """Cells that are not measured, and the reason."""

    when: When
    because: str


class Tune(Parts):
    """Overrides for some cells: parts of the workload, or the warm-up."""

    when: When
    warm: Warm | None = None


class PublishedResult(_Table):
    """Results of the source, and the corresponding cell."""

    cell: str
    # The source's name for it; default: the cell's name.
    label: str | None = None
    # The published cell with which its steps start; default: the report's `base`.
    base: str | None = None
    rps: float | None = None
    # Successful responses divided by the duration of the load.
    answers_per_second: float | None = None
    # Highest rate of successful responses, and their total.
    max_rps: float | None = None
    successes: float | None = None
    p50_ms: float | None = None
    p90_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    failed_ratio: float | None = None

    @model_validator(mode="before")
    @classmethod
    def _per_second(cls, fields: Any) -> Any:
        """Convert `per_5s`, the unit of some sources, to answers per second."""
        if isinstance(fields, dict) and isinstance(fields.get("per_5s"), int | float):
            rest = {name: value for name, value in fields.items() if name != "per_5s"}
            return {**rest, "answers_per_second": fields["per_5s"] / 5}
        return fields


class Claim(_Table):
    """A claim of the source or the lab. `holds` is an expression over the names in `measures`."""

    id: Name
    text: str
    published: str | None = None
    measures: dict[Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]*$")], Expression]
    holds: Expression


class Quick(_Table):
    """The cells of `--quick`, by name or position; their loads last at most `duration`."""

    only: Annotated[list[str], Field(min_length=1)]
    duration: Duration


class Layout(_Table):
    """The report's layout of the cells, and the metric that it compares."""

    # One metric, or one for each panel.
    compare: MetricName | dict[Name, MetricName] = "goodput"
    rows: Annotated[list[Name], BeforeValidator(_as_list)] | None = None
    panels: Annotated[list[Name], BeforeValidator(_as_list)] | None = None
    # Baseline of a cell: the same cell, but with these positions.
    base: dict[Name, Name] = {}


class Experiment(_Table):
    """A complete file. Its cells are the product of the axes, without the excluded ones."""

    schema_version: Literal[1]
    title: str
    question: str
    source: str
    # A target of the user's own, by name or path; without one, the reference app is measured.
    target: Annotated[str, Field(min_length=1)] | None = None
    repeats: Annotated[int, Field(ge=1, le=100)] = 3
    settings: dict[str, str | int] = {}
    axis: Annotated[list[Axis], Field(min_length=1)]
    exclude: list[Exclusion] = []
    tune: list[Tune] = []
    published: list[PublishedResult] = []
    claims: list[Claim] = []
    quick: Quick | None = None
    report: Layout = Layout()

    @model_validator(mode="after")
    def _axes_are_distinct(self) -> "Experiment":
        names = [axis.name for axis in self.axis]
        if repeated := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"two axes are named {repeated[0]}")
        count = math.prod(len(axis.positions) for axis in self.axis)
        if count > _MAX_CELLS:
            raise ValueError(f"the axes make {count:,} cells; at most {_MAX_CELLS:,} are possible")
        return self

    @model_validator(mode="after")
    def _keys_fit_the_target(self) -> "Experiment":
        used = {
            f"axis {axis.name}, position {name}: {key}"
            for axis in self.axis
            for name, variant in axis.positions.items()
            for key in variant.model_fields_set & (_REFERENCE_KEYS if self.target else {"target"})
        }
        if self.target and self.settings:
            used.add("settings")
        if used:
            a_target = "a target: name it with target = … or --target"
            owner = "the reference app" if self.target else a_target
            raise ValueError(f"{min(used)} is for {owner}")
        return self

    @model_validator(mode="after")
    def _positions_are_known(self) -> "Experiment":
        for when in (*(r.when for r in self.exclude), *(r.when for r in self.tune)):
            self._check(when)
        self._check({name: [position] for name, position in self.report.base.items()})
        if isinstance(self.report.compare, dict):
            self._check_compared(self.report.compare)
        for name in (*(self.report.rows or []), *(self.report.panels or [])):
            self._check({name: []})
        return self

    def _check_compared(self, compare: dict[str, MetricName]) -> None:
        """Check the panels' metrics: one for an unknown panel would have no effect."""
        panels = self.report.panels or ["load"]
        if len(panels) > 1:
            raise ValueError("compare takes one metric where several axes are panels")
        self._check({panels[0]: list(compare)})

    def _check(self, when: When) -> None:
        axes = {axis.name: axis.positions for axis in self.axis}
        for name, positions in when.items():
            if name not in axes:
                raise ValueError(f"there is no axis {name}; the axes are {', '.join(axes)}")
            for position in positions:
                if position not in axes[name]:
                    known = ", ".join(axes[name])
                    raise ValueError(f"axis {name} has no position {position}; it has {known}")
