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


def definition(asked: str) -> tuple[str, str]:
    """Return the name of an experiment, and the text of its file.

    `asked` is the name, or the path of a user's file; then the file's name is the experiment's.

    Raises:
        UsageError: there is none.
    """
    own = Path(asked)
    if own.suffix == ".toml" and own.is_file():
        return own.stem, own.read_text()
    if asked not in names():
        known = ", ".join(names()) or "none"
        raise UsageError(
            f"There is no experiment {asked}. Known: {known} (in experiments/). One of your own is "
            "named by its path, which ends in .toml."
        )
    return asked, (EXPERIMENTS / f"{asked}.toml").read_text()


def parse(name: str, text: str) -> Experiment:
    """Return the experiment that `text` declares.

    Raises:
        UsageError: it is not TOML, or violates the schema; lists every invalid field.
    """
    where = f"{name}.toml"
    try:
        return Experiment.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where} is not TOML: {error}.") from None
    except ValidationError as error:
        found = "\n".join(f"  {_place(e['loc'])}: {problem(e)}" for e in error.errors())
        raise UsageError(
            f"{where} does not follow the schema (docs/experiments/README.md):\n{found}"
        ) from None


def checked_cells(name: str, experiment: Experiment, base: Settings) -> list[Cell]:
    """Return the experiment's cells, with checked settings.

    Raises:
        UsageError: a cell has no workload, a setting or value is unknown, or no cell is left.
    """
    try:
        found = cells(experiment)
    except ValueError as error:
        raise UsageError(f"{name}.toml: {error}.") from None
    for cell in found:
        try:
            check_legacy(cell, update_live_settings(base, cell.settings))
        except UsageError as error:
            raise UsageError(f"{name}.toml, cell {cell.name}: {error}") from None
    if not found:
        raise UsageError(f"{name}.toml excludes every cell.")
    return found


def _place(location: tuple[str | int, ...]) -> str:
    return ".".join(map(str, location)) or "the whole"
