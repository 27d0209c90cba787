"""Reader of experiment files: those in experiments/, and a user's own."""

import tomllib
from pathlib import Path

from lab_settings.messages import problem
from pydantic import ValidationError

from lab.errors import UsageError
from lab.experiments.matrix import Cell, cells
from lab.experiments.old_stack_cell import check_legacy
from lab.experiments.schema import Experiment
from lab.paths import EXPERIMENTS
from lab.settings import Settings, update_live_settings


def names() -> list[str]:
    """Return the names of the experiments in experiments/."""
    return sorted(path.stem for path in EXPERIMENTS.glob("*.toml"))


def definition(name: str) -> tuple[str, str]:
    """Return the name of an experiment, and the text of its file.

    `name` may also be the path of a user's file; then the file's name is the experiment's.

    Raises:
        UsageError: there is none.
    """
    path = Path(name)
    if path.suffix == ".toml" and path.is_file():
        return path.stem, path.read_text()
    if name not in names():
        known = ", ".join(names()) or "none"
        raise UsageError(
            f"There is no experiment {name}. Known: {known} (in experiments/). One of your own is "
            "named by its path, which ends in .toml."
        )
    return name, (EXPERIMENTS / f"{name}.toml").read_text()


def parse(name: str, text: str) -> Experiment:
    """Return the experiment that `text` declares.

    Raises:
        UsageError: it is not TOML, or violates the schema; lists every invalid field.
    """
    file = f"{name}.toml"
    try:
        return Experiment.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file} is not TOML: {error}.") from None
    except ValidationError as error:
        errors = "\n".join(f"  {_place(e['loc'])}: {problem(e)}" for e in error.errors())
        raise UsageError(
            f"{file} does not follow the schema (docs/experiments/README.md):\n{errors}"
        ) from None


def checked_cells(name: str, experiment: Experiment, base: Settings) -> list[Cell]:
    """Return the experiment's cells, with checked settings.

    Raises:
        UsageError: a cell has no workload, a setting or value is unknown, or no cell is left.
    """
    try:
        all_cells = cells(experiment)
    except ValueError as error:
        raise UsageError(f"{name}.toml: {error}.") from None
    for cell in all_cells:
        try:
            check_legacy(cell, update_live_settings(base, cell.settings))
        except UsageError as error:
            raise UsageError(f"{name}.toml, cell {cell.name}: {error}") from None
    if not all_cells:
        raise UsageError(f"{name}.toml excludes every cell.")
    return all_cells


def _place(location: tuple[str | int, ...]) -> str:
    return ".".join(map(str, location)) or "the whole"
