"""An experiment whose variants are the servers that a target's environment has."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lab_settings.types import cpu_numbers

from load_lab.errors import UsageError
from load_lab.experiments.schema import Axis, Exclusion, Experiment
from load_lab.machine.cpus import choose_cpus
from load_lab.settings import Settings
from load_lab.targets.declared import DeclaredTarget
from load_lab.targets.file import Command
from load_lab.targets.servers import PYTHON, AppServers, find_servers, program_of


@dataclass(frozen=True)
class Fitted:
    """An experiment as a target can run it; `notes` say what was guessed and what is left out,
    `versions` are those of its servers.
    """

    experiment: Experiment
    notes: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


def fit(experiment: Experiment, target: DeclaredTarget, settings: Settings) -> Fitted:
    """Fill in the commands with {python}, and exclude those that the target can't run.

    Raises:
        UsageError: it can run none of them, or what it serves is not known.
    """
    commands = [command for axis in experiment.axis for command in _commands(axis).values()]
    if not commands:
        return Fitted(experiment)
    cpus = len(cpu_numbers(choose_cpus(settings).target))
    servers = find_servers(target, {*map(program_of, commands)} - {""}, cpus)
    excluded = [rule for axis in experiment.axis for rule in _exclusions(axis, servers)]
    left_out = [f"{_names(rule)} ({rule.because})" for rule in excluded]
    if all(map(servers.why_not, commands)):
        raise UsageError(
            f"None of these servers can start {target.name}: {'; '.join(left_out)}. Install one, "
            f"or name what is missing in {target.path}."
        )
    changes: dict[str, Any] = {
        "axis": [_filled(axis, servers) for axis in experiment.axis],
        "exclude": [*experiment.exclude, *excluded],
    }
    start = target.file.start
    notes = [f"Command of [start]: {shlex.join(start.command)}"] if start else []
    notes += [f"Guessed: {name} = {text}" for name, text in servers.guessed.items()]
    notes += [f"Left out: {text}" for text in left_out]
    return Fitted(experiment.model_copy(update=changes), tuple(notes), servers.versions)


def _commands(axis: Axis) -> dict[str, Command]:
    """Return the commands that the app's environment starts, by position."""
    commands = {
        name: each.target.command
        for name, each in axis.positions.items()
        if each.target and each.target.command
    }
    return {name: command for name, command in commands.items() if PYTHON in command}


def _exclusions(axis: Axis, servers: AppServers) -> list[Exclusion]:
    """Return a rule for each reason."""
    reasons: dict[str, list[str]] = {}
    for name, command in _commands(axis).items():
        if reason := servers.why_not(command):
            reasons.setdefault(reason, []).append(name)
    return [Exclusion(when={axis.name: names}, because=reason) for reason, names in reasons.items()]


def _names(rule: Exclusion) -> str:
    return ", ".join(name for names in rule.when.values() for name in names)


def _filled(axis: Axis, servers: AppServers) -> Axis:
    positions = dict(axis.positions)
    for name, command in _commands(axis).items():
        variant = positions[name]
        if variant.target and not servers.why_not(command):
            target = variant.target.model_copy(update={"command": servers.command(command)})
            positions[name] = variant.model_copy(update={"target": target})
    return axis.model_copy(update={"positions": positions})
