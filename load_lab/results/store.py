"""The contents of results/: runs of `lab k6`, of experiments and of suites, by name."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from load_lab.errors import LabError, UsageError
from load_lab.paths import project
from load_lab.results.provenance import read_json, require_format

Kind = Literal[
    "run",
    "profile",
    "experiment",
    "bench",
    "bench-growth",
    "calibrate",
    "capacity",
    "compare",
    "demo",
    "overload",
    "soak",
]
_SUITE = re.compile(r"(bench|bench-growth|demo|overload|soak)-\d{8}-\d{6}")
_FOLDER = re.compile(r"(calibrate|capacity|compare)-\d{8}-\d{6}")


@dataclass(frozen=True)
class StoredRun:
    """A run below results/, and the file that describes it."""

    name: str
    kind: Kind
    path: Path

    def document(self) -> dict[str, Any]:
        """Return the content of the file.

        Raises:
            LabError: it is not the JSON document of a run.
            UsageError: it has another format.
        """
        try:
            document = read_json(self.path)
            require_format(document, self.path)
        except ValueError as error:
            raise self.damaged(str(error)) from None
        return document

    def damaged(self, reason: str) -> LabError:
        """Return the error to raise for a file that can't be used."""
        return LabError(
            f"{project().relative(self.path)} is damaged ({reason}). Nothing was changed. Move it "
            "away, or measure again."
        )


def stored_runs() -> Iterator[StoredRun]:
    """Yield every stored run, newest first by the time of its file."""
    files = [
        path for pattern in _FILES for path in project().results.glob(pattern) if path.is_file()
    ]
    for path in sorted(files, key=lambda path: path.stat().st_mtime, reverse=True):
        run = _run_of(path)
        if run:
            yield run


def find_run(name: str) -> StoredRun:
    """Return the run of that name.

    Raises:
        UsageError: there is none.
    """
    runs = list(stored_runs())
    for run in runs:
        if run.name == name:
            return run
    if not runs:
        raise UsageError(f"There is no run {name}: none is stored yet. `lab k6 smoke` makes one.")
    newest = ", ".join(run.name for run in runs[:5])
    raise UsageError(f"There is no run {name}. The newest: {newest}. All of them: lab list runs")


_FILES = ("*/result.json", "*/profile.json", "*/experiment.json", "*.json")


def _run_of(path: Path) -> StoredRun | None:
    if path.parent == project().results:
        suite = _SUITE.fullmatch(path.stem)
        return StoredRun(path.stem, suite[1], path) if suite else None  # type: ignore[arg-type]
    if folder := _FOLDER.fullmatch(path.parent.name):
        return StoredRun(path.parent.name, folder[1], path)  # type: ignore[arg-type]
    kinds: dict[str, Kind] = {"result": "run", "profile": "profile", "experiment": "experiment"}
    return StoredRun(path.parent.name, kinds[path.stem], path)
