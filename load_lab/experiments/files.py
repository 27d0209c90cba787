"""Reader of experiment files: those in experiments/ and experiments/own/, and a user's own."""

import tomllib
from pathlib import Path
from typing import Any

from lab_settings.messages import problem, shorten
from pydantic import ValidationError

from load_lab.errors import UsageError
from load_lab.experiments.legacy_cell import check_legacy
from load_lab.experiments.matrix import Cell, cells
from load_lab.experiments.schema import Experiment
from load_lab.experiments.target_cell import check_target_cell
from load_lab.paths import EXPERIMENTS, OWN_EXPERIMENTS
from load_lab.settings import Settings, update_live_settings
from load_lab.targets.declared import DeclaredTarget


def names() -> list[str]:
    """Return the names of the experiments in experiments/."""
    return sorted(path.stem for path in EXPERIMENTS.glob("*.toml"))


def own_names() -> list[str]:
    """Return the names of the experiments for a target."""
    return sorted(path.stem for path in OWN_EXPERIMENTS.glob("*.toml"))


def definition(name: str, target: str | None = None) -> tuple[str, str]:
    """Return the name of an experiment, of one for a target if that is named, and the text of its
    file.

    `name` may also be the path of a user's file; then the file's name is the experiment's.

    Raises:
        UsageError: there is none.
    """
    path = Path(name)
    if path.suffix == ".toml" and path.is_file():
        return path.stem, _text(path)
    if path.suffix == ".toml":
        raise UsageError(f"There is no file {name}. Known experiments: {', '.join(names())}.")
    if name in own_names():
        if target is None:
            raise UsageError(
                f"{name} is for an app of your own: lab run {name} --target NAME. For the lab's "
                "servers: lab set LAB_SERVER=…, then any load."
            )
        return name, _text(OWN_EXPERIMENTS / f"{name}.toml")
    if target is not None and name in names():
        own = ", ".join(own_names())
        raise UsageError(
            f"{name} measures the reference app. Leave --target out. Those for a target: {own}; or "
            "the path of your file."
        )
    if name not in names():
        known = ", ".join(names()) or "none"
        raise UsageError(
            f"There is no experiment {name}. Known: {known} (in experiments/). One of your own is "
            "named by its path, which ends in .toml."
        )
    return name, _text(EXPERIMENTS / f"{name}.toml")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path} is not UTF-8 (byte {error.start}). Save the file as UTF-8."
        ) from None


def parse(name: str, text: str, target: str | None = None) -> Experiment:
    """Return the experiment that `text` declares; `target` is used instead of the one it names.

    Raises:
        UsageError: it is not TOML, or violates the schema; lists every invalid field.
    """
    file = f"{name}.toml"
    try:
        document = _document(file, text)
        return Experiment.model_validate(document | ({"target": target} if target else {}))
    except ValidationError as error:
        errors = "\n".join(f"  {_place(e['loc'])}: {problem(e)}" for e in error.errors())
        raise UsageError(
            f"{file} does not follow the schema (docs/experiments/README.md):\n{errors}"
        ) from None


def _document(file: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise UsageError(f"{file} is nested too deeply.") from None
    except ValueError as error:
        # Also of an integer with thousands of digits, which is no TOMLDecodeError.
        raise UsageError(f"{file} is not TOML: {error}.") from None


def checked_cells(
    name: str, experiment: Experiment, base: Settings, target: DeclaredTarget | None = None
) -> list[Cell]:
    """Return the experiment's cells, with checked settings and variants of its target.

    Raises:
        UsageError: a cell has no workload, a setting or value is unknown, or no cell is left.
    """
    try:
        all_cells = cells(experiment)
    except ValueError as error:
        raise UsageError(f"{name}.toml: {error}.") from None
    for cell in all_cells:
        try:
            if target:
                check_target_cell(cell, target)
            else:
                check_legacy(cell, update_live_settings(base, cell.settings))
        except UsageError as error:
            raise UsageError(f"{name}.toml, cell {cell.name}: {error}") from None
    if not all_cells:
        raise UsageError(f"{name}.toml excludes every cell.")
    return all_cells


def _place(location: tuple[str | int, ...]) -> str:
    return ".".join(shorten(part) for part in location) or "the whole"
