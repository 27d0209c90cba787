"""Which cells a run measures, in which order and how often."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from load_lab.errors import UsageError
from load_lab.experiments import claims, files, matrix
from load_lab.experiments.matrix import Cell
from load_lab.experiments.own_servers import Fitted, fit
from load_lab.experiments.schema import Experiment, Quick
from load_lab.settings import load_settings
from load_lab.targets.declared import DeclaredTarget, find_allowed


@dataclass(frozen=True)
class Plan:
    """The cells to measure, in their order. `command` is what was typed, without options; `notes`
    say what of a target was guessed and left out, `versions` are those of its servers.
    """

    name: str
    text: str
    experiment: Experiment
    todo: list[tuple[Cell, int]]
    quick: bool
    repeats: int
    # The user's own; None for the reference app.
    target: DeclaredTarget | None = None
    command: str = ""
    notes: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)

    def seconds(self, slowness: float) -> float:
        """Return the expected duration on a machine of that slowness."""
        return sum(cell.expected_seconds(slowness) for cell, _ in self.todo)


def command_of(name_or_path: str, target: str | None) -> str:
    """Return what to type for a new run."""
    return f"lab run {name_or_path}" + (f" --target {target}" if target else "")


def plan_of(
    name_or_path: str,
    *,
    target_name: str | None = None,
    only: list[str],
    repeats: int | None,
    quick: bool,
    allowed_host: str | None = None,
) -> Plan:
    """Return the plan of a new run, of the target with that name if there is one.

    Raises:
        UsageError: the experiment, a pattern, a setting or a claim is invalid, or its target is
            public and not on `allowed_host`.
    """
    name, text = files.definition(name_or_path, target_name)
    fitted = Fitted(files.parse(name, text, target_name))
    settings = load_settings()
    target: DeclaredTarget | None = None
    if fitted.experiment.target:
        target = find_allowed(fitted.experiment.target, allowed_host)
        fitted = fit(fitted.experiment, target, settings)
    experiment = fitted.experiment
    cells = files.checked_cells(name, experiment, settings, target)
    plan = make_plan(
        name, text, experiment, cells, only=only, repeats=repeats, quick=quick, target=target
    )
    command = command_of(name_or_path, target_name)
    return replace(plan, command=command, notes=fitted.notes, versions=fitted.versions)


def make_plan(
    name: str,
    text: str,
    experiment: Experiment,
    cells: list[Cell],
    *,
    only: list[str],
    repeats: int | None,
    quick: bool,
    target: DeclaredTarget | None = None,
) -> Plan:
    """Return the plan of a run.

    Raises:
        UsageError: a pattern of `only` matches no cell, or a claim needs a cell that does not exist
            or that the quick cells lack.
    """
    _check(name, experiment, cells)
    quick_cells = experiment.quick if quick else None
    patterns = only or (quick_cells.only if quick_cells else [])
    selection = _select(experiment, cells, patterns)
    rounds = repeats or (1 if quick_cells else experiment.repeats)
    short_cells = [matrix.shorten(cell, quick_cells) for cell in selection] if quick else selection
    # Of a published experiment: those that decide its claims.
    definitions = [claim.model_dump() for claim in experiment.claims]
    repeated = claims.deciding_cells(definitions) if repeats and not only else set[str]()
    todo = matrix.order(short_cells, rounds, repeated)
    return Plan(name, text, experiment, todo, quick, rounds, target)


def _check(name: str, experiment: Experiment, cells: list[Cell]) -> None:
    """Check all names of cells, before a run of hours."""
    names = {cell.name for cell in cells}
    definitions = [claim.model_dump() for claim in experiment.claims]
    errors = claims.problems(definitions, names)
    errors += [f"published: no cell {p.cell}" for p in experiment.published if p.cell not in names]
    published_names = {p.cell for p in experiment.published}
    bases = [p.base for p in experiment.published if p.base and p.base not in published_names]
    errors += [f"published: base {base} is no published cell" for base in bases]
    if experiment.quick and not errors:
        errors = _undecided_claims(experiment.quick, definitions, cells)
    if errors:
        raise UsageError(f"{name}.toml:\n" + "\n".join(f"  {line}" for line in errors))


def _undecided_claims(
    quick: Quick, definitions: list[dict[str, Any]], cells: list[Cell]
) -> list[str]:
    """Return the claims that the quick cells could not decide."""
    patterns = [one for one in quick.only if not matrix.select(cells, [one])]
    errors = [f"quick: {pattern} fits no cell" for pattern in patterns]
    names = {cell.name for cell in matrix.select(cells, quick.only)}
    return errors + [
        f"{error}, among those of [quick]" for error in claims.problems(definitions, names)
    ]


def _select(experiment: Experiment, cells: list[Cell], only: list[str]) -> list[Cell]:
    for pattern in only:
        if not matrix.select(cells, [pattern]):
            names = "\n  ".join(cell.name for cell in cells)
            excluded = _why_excluded(experiment, pattern)
            raise UsageError(f"--only {pattern} fits no cell{excluded}. The cells are:\n  {names}")
    return matrix.select(cells, only) if only else cells


def _why_excluded(experiment: Experiment, pattern: str) -> str:
    """Return why the pattern fits only a cell that is left out; empty if it fits none of those."""
    excluded = (
        (name, group["because"])
        for group in matrix.exclusions(experiment)
        for name in group["cells"]
    )
    fitting = (
        f": {name} is left out ({because})"
        for name, because in excluded
        if fnmatchcase(name, pattern) or pattern in name.split("/")
    )
    return next(fitting, "")
