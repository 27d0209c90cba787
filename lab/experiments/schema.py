"""What an experiment's file may say. docs/experiments/README.md explains it to its writers."""

from typing import Annotated, Any, Literal

from lab_settings.durations import PATTERN
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from lab.analysis.result import COMPARED

SCHEMA_VERSION = 1


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Name = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
LegacyName = Annotated[str, Field(pattern=r"^[a-z0-9]+([-.][a-z0-9]+)*$")]
Duration = Annotated[str, Field(pattern=PATTERN)]


def _compared(name: str) -> str:
    if name not in COMPARED:
        raise ValueError(f"cells can't be compared by {name}; known: {', '.join(COMPARED)}")
    return name


# The metric that a report compares its cells by.
Figure = Annotated[str, AfterValidator(_compared)]
# Which positions of which axes: {layer = ["none", "local"], load = "detail"}.
When = dict[str, Annotated[list[str], BeforeValidator(_listed)]]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Options(_Table):
    """What a load may say; which of it a profile or scenario takes, k6/README.md tells.

    The bounds are k6's own (k6/lib), so that a file is refused before anything is started.
    """

    rate: Annotated[int, Field(ge=1, le=100_000)] | None = None
    vus: Annotated[int, Field(ge=1, le=1000)] | None = None
    # Where arrivals come: how many may be under way. What the generator can't bear all at once only
    # makes it slower.
    max_vus: Annotated[int, Field(ge=1, le=50_000)] | None = None
    # The scenario `workbench`: which of its routes.
    route: str | None = None
    # The scenario `availability`: how many WebSockets are held.
    connections: Annotated[int, Field(ge=1, le=20_000)] | None = None
    # How often k6 asks again when a request has failed.
    retries: Annotated[int, Field(ge=0, le=10)] | None = None
    # An answer later than this is of no use; a ramp breaks when p95 passes it. Default: 1000.
    bound_ms: Annotated[int, Field(ge=1, le=3_600_000)] | None = None


# What k6 asks: Nginx; the server behind it, as sources without a proxy did; or what Nginx has below
# /async/, which is LAB_SECOND_SERVER's where there is one.
Entry = Literal["nginx", "server", "async"]


class Workload(_Options):
    """A load as k6/main.js knows it. A ramp needs its duration, so that time can be told ahead."""

    profile: str
    scenario: str
    duration: Duration
    entry: Entry = "nginx"


class Parts(_Options):
    """Some of a workload; what the axes and tunes of a cell say makes a whole one."""

    profile: str | None = None
    scenario: str | None = None
    duration: Duration | None = None
    entry: Entry | None = None


class Legacy(_Table):
    """An arm of a pinned old stack in experiments/legacy/, which answers instead of the backend.

    One axis may name the stack and another the arm; without a stack it is today's.
    """

    stack: LegacyName | None = None
    arm: LegacyName | None = None


# What happens between empty caches and the load: nothing, each page once, or a load.
Warm = Literal["none", "pages"] | Workload


class Position(_Table):
    """One position of an axis. Of several positions that say the same thing, the last axis wins."""

    title: str
    settings: dict[str, str | int] = {}
    workload: Parts | None = None
    warm: Warm | None = None
    legacy: Legacy | None = None
    # What the load needs put back: the database, or nothing where it writes nothing.
    reset: Literal["database", "nothing"] | None = None


class Axis(_Table):
    name: Name
    positions: dict[Name, Position]


class Exclude(_Table):
    """Cells that are not measured, and why."""

    when: When
    because: str


class Tune(Parts):
    """What is different in some cells: parts of the workload, or the warm-up."""

    when: When
    warm: Warm | None = None


class Published(_Table):
    """Figures of the source, and the cell that corresponds to them."""

    cell: str
    # What the source calls it; without one, the cell's own name.
    label: str | None = None
    # The published cell that its steps begin at, where that is not the report's `base`.
    base: str | None = None
    rps: float | None = None
    # Successful answers over the length of the load.
    answers_per_second: float | None = None
    # Most successful answers per second, and successful answers in all.
    max_rps: float | None = None
    successes: float | None = None
    p50_ms: float | None = None
    p90_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    failed_ratio: float | None = None

    @model_validator(mode="before")
    @classmethod
    def _per_second(cls, found: Any) -> Any:
        """`per_5s`: how some sources count; stored as answers per second."""
        if isinstance(found, dict) and "per_5s" in found:
            rest = {name: value for name, value in found.items() if name != "per_5s"}
            return {**rest, "answers_per_second": found["per_5s"] / 5}
        return found


class Claim(_Table):
    """What the source (or the lab) says. `holds` is an expression over the names in `measures`."""

    id: Name
    text: str
    published: str | None = None
    measures: dict[Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]*$")], str]
    holds: str


class Quick(_Table):
    """What `--quick` measures: cells by name or position, loads no longer than `duration`."""

    only: Annotated[list[str], Field(min_length=1)]
    duration: Duration


class Shown(_Table):
    """How the report lays the cells out, and which figure it compares."""

    # One figure, or one for each panel.
    compare: Figure | dict[Name, Figure] = "goodput"
    rows: Annotated[list[Name], BeforeValidator(_listed)] | None = None
    panels: Annotated[list[Name], BeforeValidator(_listed)] | None = None
    # What a cell is compared with: the cell that differs from it in these positions.
    base: dict[Name, Name] = {}


class Experiment(_Table):
    """A whole file. Its cells are the product of the axes, less what `exclude` takes out."""

    schema_version: Literal[1]
    title: str
    question: str
    source: str
    repeats: Annotated[int, Field(ge=1, le=100)] = 1
    settings: dict[str, str | int] = {}
    axis: Annotated[list[Axis], Field(min_length=1)]
    exclude: list[Exclude] = []
    tune: list[Tune] = []
    published: list[Published] = []
    claims: list[Claim] = []
    quick: Quick | None = None
    report: Shown = Shown()

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

    def _check_compared(self, compare: dict[str, Figure]) -> None:
        """A figure for a panel that there is not would be compared nowhere."""
        panels = self.report.panels or ["load"]
        if len(panels) > 1:
            raise ValueError("compare takes one metric where several axes are panels")
        self._check({panels[0]: list(compare)})

    def _check(self, when: When) -> None:
        axes = {axis.name: axis.positions for axis in self.axis}
        for name, wanted in when.items():
            if name not in axes:
                raise ValueError(f"there is no axis {name}; the axes are {', '.join(axes)}")
            for position in wanted:
                if position not in axes[name]:
                    known = ", ".join(axes[name])
                    raise ValueError(f"axis {name} has no position {position}; it has {known}")
