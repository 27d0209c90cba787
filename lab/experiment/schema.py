"""What an experiment's file may say. docs/experiments/README.md explains it to its writers."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from lab.durations import PATTERN

SCHEMA_VERSION = 1


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Name = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
Duration = Annotated[str, Field(pattern=PATTERN)]
# Which positions of which axes: {layer = ["none", "local"], load = "detail"}.
When = dict[str, Annotated[list[str], BeforeValidator(_listed)]]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Workload(_Table):
    """A load as k6/main.js knows it. A ramp needs its duration, so that time can be told ahead."""

    profile: str
    scenario: str
    duration: Duration
    rate: Annotated[int, Field(ge=1)] | None = None
    vus: Annotated[int, Field(ge=1)] | None = None
    # The scenario `workbench`: which of its routes.
    route: str | None = None
    # The scenario `availability`: how many WebSockets are held.
    connections: Annotated[int, Field(ge=1)] | None = None
    # An answer later than this is of no use; a ramp breaks when p95 passes it. Default: 1000.
    bound_ms: Annotated[int, Field(ge=1)] | None = None
    # What k6 asks: Nginx, or the server behind it, as sources without a proxy did.
    entry: Literal["nginx", "server"] = "nginx"


class Legacy(_Table):
    """An arm of a pinned old stack in legacy/, which answers instead of the backend."""

    stack: Name
    arm: Name


# What happens between empty caches and the load: nothing, each page once, or a load.
Warm = Literal["none", "pages"] | Workload


class Position(_Table):
    """One position of an axis. Of several positions that say the same thing, the last axis wins."""

    title: str
    settings: dict[str, str | int] = {}
    workload: Workload | None = None
    warm: Warm | None = None
    legacy: Legacy | None = None
    # What is put back before the cell: the database, or nothing where the load writes nothing.
    reset: Literal["database", "nothing"] | None = None


class Axis(_Table):
    name: Name
    positions: dict[Name, Position]


class Exclude(_Table):
    """Cells that are not measured, and why."""

    when: When
    because: str


class Tune(_Table):
    """What is different in some cells: parts of the workload, or the warm-up."""

    when: When
    profile: str | None = None
    rate: Annotated[int, Field(ge=1)] | None = None
    duration: Duration | None = None
    warm: Warm | None = None


class Published(_Table):
    """A figure of the source, and the cell that corresponds to it."""

    cell: str
    label: str
    rps: float | None = None
    p95_ms: float | None = None
    failed_ratio: float | None = None


class Claim(_Table):
    """What the source (or the lab) says. `holds` is an expression over the names in `measures`."""

    id: Name
    text: str
    published: str | None = None
    measures: dict[Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]*$")], str]
    holds: str


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

    @model_validator(mode="after")
    def _positions_are_known(self) -> "Experiment":
        for when in (*(r.when for r in self.exclude), *(r.when for r in self.tune)):
            self._check(when)
        return self

    def _check(self, when: When) -> None:
        axes = {axis.name: axis.positions for axis in self.axis}
        for name, wanted in when.items():
            if name not in axes:
                raise ValueError(f"there is no axis {name}; the axes are {', '.join(axes)}")
            for position in wanted:
                if position not in axes[name]:
                    known = ", ".join(axes[name])
                    raise ValueError(f"axis {name} has no position {position}; it has {known}")
