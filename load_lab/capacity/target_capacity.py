"""The capacity of a target as it runs, on which overloads and soaks are based."""

from collections.abc import Callable
from dataclasses import dataclass

from load_lab.capacity.measurement import LAST_SECONDS, CapacityOptions, new_folder, search
from load_lab.capacity.outcomes import Outcome
from load_lab.capacity.timeline import Slo
from load_lab.errors import LabError
from load_lab.metrics.windows import Bounds
from load_lab.targets.subject import Running

BUDGET_SECONDS = 150
# At most; most searches end sooner.
SECONDS = BUDGET_SECONDS + LAST_SECONDS
# The limits of a ramp.
SLO = Slo(Bounds().p95_ms / 1000, Bounds().error_ratio)


@dataclass(frozen=True)
class TargetCapacity:
    """The requests/s that the target sustains within `SLO`; of a generator that is the limit, those
    that were sustained. `cpu_speed` is that of its loads, see load_lab/machine/noise.py.
    """

    rate: float
    headline: str
    outcome: Outcome
    folder: str
    cpu_speed: float | None


def find_target_capacity(
    running: Running, scenario: str | None, show: Callable[[str], None]
) -> TargetCapacity:
    """Search the capacity; `show` gets a line for each load.

    Raises:
        LabError: a single request already takes too long, the target failed, or its capacity is too
            low for loads of whole requests per second.
    """
    options = CapacityOptions(SLO, scenario, budget=BUDGET_SECONDS)
    document = search(running.engine, running.target, options, new_folder(), show)
    rate, headline = document["rate"], document["headline"]
    what = f"The capacity for {scenario or running.target.description}"
    if rate is None:
        raise LabError(f"{what} is not known: {headline}. See where the time goes: lab profile.")
    if rate <= 1:
        raise LabError(
            f"{what} is {headline}: half or twice of it is no load of whole requests per second. "
            "See where the time goes: lab profile."
        )
    folder = document["files"]["folder"]
    return TargetCapacity(rate, headline, document["outcome"], folder, document["cpu_speed"])
