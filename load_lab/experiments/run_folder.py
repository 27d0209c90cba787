"""A run's folder, written step by step, so that no measurement is lost."""

import re
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from lab_settings.messages import problem
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from load_lab.errors import LabError, UsageError
from load_lab.experiments.schema import Claim, Layout, Parts, PublishedResult
from load_lab.metrics.windows import Bounds
from load_lab.paths import project
from load_lab.results.provenance import SCHEMA_VERSION, Host, read_json, require_format, write_json
from load_lab.results.result import Result
from load_lab.targets.file import Variation

_HEADERS = "*/experiment.json"
_NAME = re.compile(r"(?P<experiment>.+)-(?P<stamp>\d{8}-\d{6}-[0-9a-f]{4})")
_Model = TypeVar("_Model", bound=BaseModel)


class _Entry(BaseModel):
    """An object of a stored document; unknown fields may be of another version."""

    model_config = ConfigDict(frozen=True, extra="allow")


class _Planned(_Entry):
    name: str
    repeat: int


class _Position(_Entry):
    name: str
    title: str = ""


class _Axis(_Entry):
    name: str
    positions: Annotated[list[_Position], Field(min_length=1)]


class _Excluded(_Entry):
    cells: list[str]
    because: str


class Header(_Entry):
    """The content of experiment.json: what was planned, where and how."""

    run: str = ""
    experiment: str
    title: str = ""
    question: str = ""
    source: str = ""
    # UTC, in ISO format.
    started: str | None = None
    ended: str | None = None
    state: str = ""
    quick: bool
    repeats: Annotated[int, Field(ge=1)]
    definition: str
    axes: list[_Axis]
    plan: list[_Planned]
    excluded: list[_Excluded] = []
    bounds: Bounds = Bounds()
    engine: str | None = None
    limits: dict[str, Any] | None = None
    versions: dict[str, Any] | None = None
    postgres_auth: str | None = None
    warnings: list[str] = []
    published: list[PublishedResult] = []
    claims: list[Claim]
    host: Host
    report: Layout | None = None


def _check_legacy(facts: dict[str, Any]) -> dict[str, Any]:
    for name in ("stack", "layer_cpus_shared_with"):
        if not isinstance(facts.get(name), str | None):
            raise ValueError(f"{name} is not text")
    return facts


def _check_delays(delays: dict[str, Any]) -> dict[str, Any]:
    for name, value in delays.items():
        if name.endswith(("_ms", "_delays")) and not isinstance(value, int | float | None):
            raise ValueError(f"{name} is not a number")
    return delays


# An old stack's report about itself.
LegacyFacts = Annotated[dict[str, Any], AfterValidator(_check_legacy)]
# As measured by load_lab/stack/latency.py.
Delays = Annotated[dict[str, Any], AfterValidator(_check_delays)]


class CellRun(BaseModel):
    """One repeat of a cell: its description and, if it was measured, its result.

    `settings` are the whole stack's if it was measured, otherwise only the cell's. `legacy` is an
    old stack's report about itself, `latency` the delays in ms just before the load.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    repeat: int = 1
    title: str = ""
    axes: dict[str, str] | None = None
    settings: dict[str, str] = {}
    workload: Parts = Parts()
    warm: Literal["none", "pages"] | Parts | None = None
    legacy: LegacyFacts | None = None
    latency: Delays | None = None
    # Of a target of the user's own.
    variant: Variation | None = None
    # UTC, in ISO format.
    began: str = ""
    cell_seconds: float | None = None
    state: Literal["measured", "failed", "not measured"]
    error: str | None = None
    result: Result | None = None

    @classmethod
    def of(cls, document: dict[str, Any]) -> "CellRun":
        """Build from a stored document, in which the result's fields are next to the cell's."""
        if document.get("state") != "measured":
            return cls.model_validate({**document, "result": None})
        # A result's profile is the workload's; the first results stored it only once.
        workload = document.get("workload")
        profile = workload.get("profile", "") if isinstance(workload, dict) else ""
        return cls.model_validate({**document, "result": {"profile": profile, **document}})

    def document(self) -> dict[str, Any]:
        """Return the content of cell.json."""
        fields = self.model_dump(mode="json", exclude={"result", "workload", "warm"})
        warm = self.warm
        return {
            **fields,
            "workload": self.workload.model_dump(exclude_none=True),
            "warm": warm.model_dump(exclude_none=True) if isinstance(warm, Parts) else warm,
            **(self.result.document() if self.result else {}),
        }


@dataclass(frozen=True)
class Store:
    """One run below results/; its name starts with the experiment's."""

    folder: Path

    @property
    def run(self) -> str:
        return self.folder.name

    @property
    def header_file(self) -> Path:
        return self.folder / "experiment.json"

    def header(self) -> dict[str, Any]:
        """Return what was planned, where and how.

        Raises:
            UsageError: it is not a run, or its format is unknown.
        """
        return _validate(self.header_file, Header.model_validate).model_dump(mode="json")

    def write_header(self, header: dict[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        write_json(self.header_file, {"schema_version": SCHEMA_VERSION, **header})

    def cell_folder(self, index: int, name: str, repeat: int) -> Path:
        return self.folder / "cells" / f"{index:03}-{name.replace('/', '+')}.r{repeat}"

    def write_cell(self, folder: Path, run: CellRun) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "cell.json", {"schema_version": SCHEMA_VERSION, **run.document()})

    def cells(self) -> list[CellRun]:
        """Return every cell so far, measured or failed, in the order of the plan."""
        return [
            _validate(path, CellRun.of) for path in sorted(self.folder.glob("cells/*/cell.json"))
        ]

    def measured(self) -> set[tuple[str, int]]:
        """Return the cells, by name and repeat, that need no measurement any more."""
        return {(cell.name, cell.repeat) for cell in self.cells() if cell.state == "measured"}


def new_store(experiment: str) -> Store:
    """Return the store of a new folder."""
    stamp = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    return Store(project().results / f"{experiment}-{stamp}")


def stores(experiment: str | None = None) -> Iterator[Store]:
    """Yield the existing runs, newest first by the time in their names."""
    matches = {
        path.parent: _NAME.fullmatch(path.parent.name) for path in project().results.glob(_HEADERS)
    }
    runs = [(match, folder) for folder, match in matches.items() if match]
    for match, folder in sorted(runs, key=lambda pair: pair[0]["stamp"], reverse=True):
        if experiment in (None, match["experiment"]):
            yield Store(folder)


def find_store(name: str | None) -> Store:
    """Return the run called `name`, the newest of the experiment `name`, or the newest of all.

    Raises:
        UsageError: there is none.
    """
    if name and _has_header(name):
        return Store(project().results / name)
    newest = next(stores(name), None)
    if newest is None:
        known = ", ".join(store.run for store in stores()) or "none yet; `lab run` makes one"
        message = f"There is no result of {name}" if name else "There is no result"
        raise UsageError(f"{message}. Known: {known}.")
    return newest


def is_experiment(name: str) -> bool:
    """Return whether this is the name of a run, or of an experiment with a run."""
    return _has_header(name) or any(stores(name))


def _has_header(name: str) -> bool:
    return (project().results / name / "experiment.json").exists()


def _validate(path: Path, parse: Callable[[dict[str, Any]], _Model]) -> _Model:
    """Return the document of a file, parsed.

    Raises:
        LabError: the file is not a document of `lab run`, or of another version.
    """
    document = _read(path)
    try:
        return parse(document)
    except ValidationError as error:
        raise _unreadable_error(path, _reason(error)) from None


def _reason(error: ValidationError) -> str:
    """Return the missing fields; else the first invalid one."""
    errors = error.errors()
    missing = [str(each["loc"][0]) for each in errors if each["type"] == "missing"]
    if missing and all(len(each["loc"]) == 1 for each in errors):
        return f"it lacks {', '.join(missing)}"
    place = ".".join(map(str, errors[0]["loc"]))
    return f"{place}: {problem(errors[0])}"


def _read(path: Path) -> dict[str, Any]:
    try:
        document = read_json(path)
        require_format(document, path)
    except ValueError as error:
        raise _unreadable_error(path, str(error)) from None
    del document["schema_version"]
    return document


def _unreadable_error(path: Path, reason: str) -> LabError:
    return LabError(
        f"{path} can't be read as a result of `lab run` ({reason}). Nothing was changed. Move it "
        "away to report the rest."
    )
