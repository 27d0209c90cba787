"""Signals of injected causes as files: what the diagnosis reads, and which names are right."""

import json
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from load_lab.diagnosis.causes import Cause
from load_lab.diagnosis.facts import Facts
from load_lab.diagnosis.reading import facts_of
from load_lab.metrics.windows import Bounds
from load_lab.results.result import Result
from load_lab.run.single_run import SingleRun
from load_lab.settings import stored_settings

# A folder; the tests of the part `causes` write each of their runs to it.
_FOLDER = "RECORD_CAUSES"
# Of a run's document: where it ran says nothing about its cause.
_LEFT_OUT = {"files", "host", "latency"}


def record(
    single_run: SingleRun, right: Collection[Cause] = (), never: Collection[Cause] = ()
) -> None:
    """Write a run's document with the names that are right; with none, it has no bottleneck."""
    if _FOLDER not in os.environ:
        return
    folder = Path(os.environ[_FOLDER])
    folder.mkdir(parents=True, exist_ok=True)
    run = {name: value for name, value in single_run.document().items() if name not in _LEFT_OUT}
    names = {"right": [each.name for each in right], "never": [each.name for each in never]}
    name = _case()
    path = next(path for path in _paths(folder, name) if not path.exists())
    path.write_text(json.dumps({"case": name, **names, "run": run}))


def _case() -> str:
    """Return the name of the test that runs, and of its parameters."""
    test = os.environ["PYTEST_CURRENT_TEST"].rpartition("::")[2].rpartition(" ")[0]
    found = re.fullmatch(r"(\w+)\[(.+)\]", test)
    return found[2] if found else test.removeprefix("test_").replace("_", " ")


def _paths(folder: Path, name: str) -> Iterator[Path]:
    """Yield the paths of the first run of this case, of the second one, …"""
    plain = re.sub(r"\W+", "-", name)
    yield folder / f"{plain}.json"
    yield from (folder / f"{plain}-{number}.json" for number in count(2))


@dataclass(frozen=True)
class Recorded:
    """A recorded run, and the names of causes that are right, and that must not appear."""

    case: str
    right: tuple[str, ...]
    never: tuple[str, ...]
    run: dict[str, Any]

    def facts(self) -> Facts | None:
        """Return what the diagnosis reads of it."""
        result = Result.model_validate(self.run)
        settings = stored_settings(self.run["settings"], self.case)
        bounds = Bounds(**self.run["bounds"])
        return facts_of(result, settings, bounds, result.rejections)


def read_recorded(path: Path) -> Recorded:
    return Recorded(**json.loads(path.read_text()))
