"""Catalogs: profiles, scenarios, experiments, presets and stored runs."""

import tomllib
from collections.abc import Callable
from datetime import UTC, datetime

from lab.errors import LabError
from lab.load import Profile, Scenario
from lab.paths import EXPERIMENTS, PRESETS
from lab.report.results import StoredRun, stored_runs

Entry = dict[str, str]


def catalog(kind: str) -> list[Entry]:
    """Return every entry of a kind: its `name`, and a line `about` it."""
    return _KINDS[kind]()


def _profiles() -> list[Entry]:
    return [{"name": entry.value, "about": entry.about} for entry in Profile]


def _scenarios() -> list[Entry]:
    return [{"name": entry.value, "about": entry.about} for entry in Scenario]


def _experiments() -> list[Entry]:
    files = sorted(EXPERIMENTS.glob("*.toml"))
    titles = (tomllib.loads(path.read_text()).get("title", "") for path in files)
    return [{"name": path.stem, "about": title} for path, title in zip(files, titles, strict=True)]


def _presets() -> list[Entry]:
    files = sorted(PRESETS.glob("*.env"))
    return [{"name": path.stem, "about": _comment(path.read_text())} for path in files]


def _comment(text: str) -> str:
    return text.splitlines()[0].lstrip("# ")


def _runs() -> list[Entry]:
    return [
        {"name": run.name, "kind": run.kind, "written": _modified_at(run), "about": _about(run)}
        for run in stored_runs()
    ]


def _modified_at(run: StoredRun) -> str:
    time = datetime.fromtimestamp(run.path.stat().st_mtime, UTC)
    return time.isoformat(timespec="seconds")


def _about(run: StoredRun) -> str:
    """Return the verdict or the state; "damaged" for an unreadable file."""
    try:
        document = run.document()
    except LabError:
        return "damaged"
    return str(document.get("verdict") or document.get("state") or "")


_KINDS: dict[str, Callable[[], list[Entry]]] = {
    "profiles": _profiles,
    "scenarios": _scenarios,
    "experiments": _experiments,
    "presets": _presets,
    "runs": _runs,
}
