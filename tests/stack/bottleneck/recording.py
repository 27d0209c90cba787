"""What was seen of injected causes as files: facts for a diagnosis without a stack."""

import json
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from load_lab.diagnosis.causes import Cause
from load_lab.diagnosis.facts import Facts
from load_lab.diagnosis.reading import facts_of
from load_lab.run.single_run import SingleRun

# A folder; the tests of the part `causes` write what was seen in each of their runs to it.
_FOLDER = "RECORD_CAUSES"
_FACTS = TypeAdapter(Facts)
_DIGITS = 4


@dataclass(frozen=True)
class Recorded:
    """The facts of a run, and the names of causes that are right, and that must not appear."""

    case: str
    right: tuple[str, ...]
    never: tuple[str, ...]
    facts: Facts


def record(
    single_run: SingleRun, right: Collection[Cause] = (), never: Collection[Cause] = ()
) -> None:
    """Write what was seen in a run that broke, with the names that are right."""
    result = single_run.result
    facts = facts_of(result, single_run.settings, single_run.bounds, result.rejections)
    if _FOLDER not in os.environ or facts is None:
        return
    folder = Path(os.environ[_FOLDER])
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "case": _case(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "right": [each.name for each in right],
        "never": [each.name for each in never],
        "facts": _short(_FACTS.dump_python(facts, mode="json", exclude_defaults=True)),
    }
    path = next(path for path in _paths(folder, document["case"]) if not path.exists())
    path.write_text(json.dumps(document) + "\n")


def read_recorded(path: Path) -> Recorded:
    document = json.loads(path.read_text())
    facts = _FACTS.validate_python(document["facts"])
    return Recorded(document["case"], tuple(document["right"]), tuple(document["never"]), facts)


def _short(value: Any) -> Any:
    """Return a document with few digits, and files without their folders."""
    if isinstance(value, dict):
        return {_plain(name): _short(each) for name, each in value.items()}
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    return [_short(each) for each in value] if isinstance(value, list) else value


def _plain(name: str) -> str:
    """Return a file's name without the folder of a test."""
    return f"/{Path(name).name}" if name.startswith("/") else name


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
