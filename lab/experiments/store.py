"""A run's folder, written step by step, so that no measurement is lost."""

import json
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from lab_settings.messages import problem
from pydantic import BaseModel, ConfigDict, ValidationError

from lab.analysis.provenance import write_json
from lab.analysis.result import Result
from lab.errors import LabError, UsageError
from lab.experiments.schema import Parts
from lab.paths import RESULTS

# History of the format:
# 1: first.
SCHEMA_VERSION = 1

_HEADERS = "*/experiment.json"
_NAME = re.compile(r"(?P<experiment>.+)-(?P<stamp>\d{8}-\d{6}-[0-9a-f]{4})")
_HEADER = ("experiment", "definition", "plan", "claims", "axes", "quick", "repeats", "host")
_CELL = ("name", "repeat", "state", "axes")


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
    legacy: dict[str, Any] | None = None
    latency: dict[str, Any] | None = None
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
        profile = (document.get("workload") or {}).get("profile", "")
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
        return _read(self.header_file, _HEADER)

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
        return [_read_cell(path) for path in sorted(self.folder.glob("cells/*/cell.json"))]


def new_store(experiment: str) -> Store:
    """Return the store of a new folder."""
    stamp = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    return Store(RESULTS / f"{experiment}-{stamp}")


def stores(experiment: str | None = None) -> Iterator[Store]:
    """Yield the existing runs, newest first by the time in their names."""
    matches = {path.parent: _NAME.fullmatch(path.parent.name) for path in RESULTS.glob(_HEADERS)}
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
        return Store(RESULTS / name)
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
    return (RESULTS / name / "experiment.json").exists()


def _read(path: Path, keys: tuple[str, ...]) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text())
        version = document["schema_version"]
        missing = [key for key in keys if key not in document]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _unreadable_error(path, f"{type(error).__name__}: {error}") from None
    if version != SCHEMA_VERSION:
        raise UsageError(
            f"{path} has schema version {version}; this lab reads {SCHEMA_VERSION}. Nothing was "
            "changed. Use the lab that wrote it: its commit stands in the file."
        )
    if missing:
        raise _unreadable_error(path, f"it lacks {', '.join(missing)}")
    return dict(document)


def _read_cell(path: Path) -> CellRun:
    document = _read(path, _CELL)
    try:
        return CellRun.of(document)
    except ValidationError as error:
        first = error.errors()[0]
        raise _unreadable_error(
            path, f"{'.'.join(map(str, first['loc']))}: {problem(first)}"
        ) from None


def _unreadable_error(path: Path, reason: str) -> LabError:
    return LabError(
        f"{path} can't be read as a result of `lab run` ({reason}). Nothing was changed. Move it "
        "away to report the rest."
    )
