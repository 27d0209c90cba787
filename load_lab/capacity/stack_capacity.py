"""The capacity of the stack with its current settings, on which overloads and soaks are based."""

from collections.abc import Callable
from dataclasses import dataclass

from load_lab.capacity.measurement import LAST_SECONDS, CapacityOptions, new_folder, search
from load_lab.capacity.outcomes import Outcome
from load_lab.capacity.timeline import Slo
from load_lab.errors import LabError
from load_lab.metrics.windows import Bounds
from load_lab.stack.engine import Engine
from load_lab.targets.reference.app import ReferenceApp

BUDGET_SECONDS = 150
# At most; most searches end sooner.
SECONDS = BUDGET_SECONDS + LAST_SECONDS
# The limits of a ramp.
SLO = Slo(Bounds().p95_ms / 1000, Bounds().error_ratio)


@dataclass(frozen=True)
class StackCapacity:
    """The requests/s that the stack sustains within `SLO`; of a generator that is the limit, those
    that were sustained. `cpu_speed` is that of its loads, see load_lab/machine/noise.py.
    """

    rate: float
    headline: str
    outcome: Outcome
    folder: str
    cpu_speed: float | None


def find_stack_capacity(
    engine: Engine, scenario: str, show: Callable[[str], None]
) -> StackCapacity:
    """Search the capacity; `show` gets a line for each load.

    Raises:
        LabError: a single request already takes too long, or the stack failed.
    """
    options = CapacityOptions(SLO, scenario, budget=BUDGET_SECONDS)
    document = search(engine, ReferenceApp(engine), options, new_folder(), show)
    if document["rate"] is None:
        raise LabError(
            f"The capacity for {scenario} is not known: {document['headline']}. See where the time "
            "goes (lab profile), or try LAB_DETAIL=fast."
        )
    return StackCapacity(
        document["rate"],
        document["headline"],
        document["outcome"],
        document["files"]["folder"],
        document["cpu_speed"],
    )
