"""Which cells a claim can't be judged by, and what limits the meaning of the others. Pure."""

from collections.abc import Mapping
from typing import Any

from lab.analysis.limits import limit_of

# With one of these a rate is a lower bound.
_LIMITS = {
    "generator_cpu": "is limited by the generator's CPU",
    "vu_cap": "is limited by the number of virtual users",
    "load": "held to the end of its ramp",
}


# As lab/experiments/old_stacks/cpus.py calls it.
_GENERATOR = "the load generator"


def gaps(
    asked: list[str], cells: Mapping[str, list[dict[str, Any]]], missing: Mapping[str, str]
) -> list[str]:
    """Cells that say nothing: those that were not measured, and those that never answered.

    Nothing can be said of one that gave no successful answer: its zeros are those of a load that
    missed its target as well.
    """
    found = []
    for name in dict.fromkeys(asked):
        runs = cells.get(name)
        if not runs:
            found.append(f"{name} was not measured{missing.get(name, '')}")
        elif not any(_answered(run) for run in runs):
            found.append(f"{name} gave no successful answer")
    return found


def _answered(run: dict[str, Any]) -> bool:
    """Results of before `successes` were counted can only be taken at their word."""
    return bool(run.get("successes", True))


def reasons(cells: list[dict[str, Any]]) -> dict[str, str]:
    """Why cells have no figures, as it was stored."""
    return {cell["name"]: f": {cell['error']}" for cell in cells if cell.get("error")}


def notes(asked: list[str], cells: Mapping[str, list[dict[str, Any]]]) -> list[str]:
    """What limits the meaning of a figure."""
    found = []
    for name in dict.fromkeys(asked):
        runs = cells.get(name, [])
        limits = {limit for run in runs if (limit := limit_of(run))}
        found += [f"{name} {_LIMITS[key]}: its rates are lower bounds" for key in sorted(limits)]
        found += [note for note in (_shares_its_layer(name, runs),) if note]
    return found


def _shares_its_layer(name: str, runs: list[dict[str, Any]]) -> str | None:
    """An old stack's channel layer that should have a CPU of its own, and has the generator's."""
    found = {(run.get("legacy") or {}).get("layer_cpus_shared_with") for run in runs}
    if _GENERATOR not in found:
        return None
    return f"{name}: the layer's Redis shares its CPU with {_GENERATOR}, which takes time from it"
