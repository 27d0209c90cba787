"""What `lab list` lists: profiles, scenarios, experiments, presets, targets and stored runs."""

import tomllib
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from load_lab.errors import LabError
from load_lab.load import Profile, Scenario
from load_lab.paths import EXPERIMENTS, OWN_EXPERIMENTS, PRESETS, project
from load_lab.results.store import StoredRun, stored_runs

Entry = dict[str, str]


def entries(kind: str) -> list[Entry]:
    """Return every entry of a kind: its `name`, and a line `about` it."""
    return _KINDS[kind]()


def _choices(choices: Iterable[Profile | Scenario]) -> list[Entry]:
    return [{"name": choice.value, "about": choice.about} for choice in choices]


def _files(files: Iterable[Path], about: Callable[[Path], str]) -> list[Entry]:
    return [{"name": path.stem, "about": about(path)} for path in sorted(files)]


def _title(path: Path) -> str:
    """Return the title of an experiment or target, else its address; "damaged" for a file that is
    not TOML.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        return str(document.get("title") or document.get("url", ""))
    except (ValueError, RecursionError):
        return "damaged"


def _comment(path: Path) -> str:
    """Return the first line of a preset, which describes it."""
    first, _, _ = path.read_text(encoding="utf-8", errors="replace").partition("\n")
    return first.lstrip("# ")


def _runs() -> list[Entry]:
    return [
        {"name": run.name, "kind": run.kind, "written": _modified_at(run), "about": _about(run)}
        for run in stored_runs()
    ]


def _modified_at(run: StoredRun) -> str:
    time = datetime.fromtimestamp(run.path.stat().st_mtime, UTC)
    return time.isoformat(timespec="seconds")


def _about(run: StoredRun) -> str:
    """Return the answer, the verdict or the state; "damaged" for an unreadable file."""
    try:
        document = run.document()
    except LabError:
        return "damaged"
    return str(next(filter(None, map(document.get, ("headline", "verdict", "state"))), ""))


_KINDS: dict[str, Callable[[], list[Entry]]] = {
    "profiles": lambda: _choices(Profile),
    "scenarios": lambda: _choices(Scenario),
    "experiments": lambda: [
        *_files(EXPERIMENTS.glob("*.toml"), _title),
        *_files(OWN_EXPERIMENTS.glob("*.toml"), lambda path: f"{_title(path)} (--target NAME)"),
    ],
    "presets": lambda: _files(PRESETS.glob("*.env"), _comment),
    "targets": lambda: _files(project().targets.glob("*.toml"), _title),
    "runs": _runs,
}


def tables(document: dict[str, list[Entry]]) -> RenderableType:
    """Return one table per kind."""
    return Group(*(_table(kind, entries) for kind, entries in document.items()))


def _table(kind: str, entries: list[Entry]) -> RenderableType:
    if not entries:
        return f"There are no {kind} yet."
    table = Table(
        title=kind, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0)
    )
    for entry in entries:
        table.add_row(*(escape(value) for value in entry.values()))
    return Group(table, "")
