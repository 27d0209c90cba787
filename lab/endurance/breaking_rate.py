"""At which rate the stack breaks, as it is set: what overloads and soaks go by."""

import math
from dataclasses import dataclass

from lab.breakpoint import Bounds
from lab.engine import Engine
from lab.errors import LabError
from lab.k6 import Load, new_testid
from lab.measure import measure

# Enough for some more workers than two, few enough that answers stay quick.
_FULL_VUS, _FULL_SECONDS = 8, 6
# The ramp goes to this multiple of what the target answers when it is asked without a pause: there
# its queue has grown for long enough to break the bound on p95.
_RAMP_FACTOR, _RAMP_SECONDS = 1.7, 40
SECONDS = _FULL_SECONDS + _RAMP_SECONDS


@dataclass(frozen=True)
class Limit:
    """The requests/s that were borne when a bound gave way, and the best goodput before it."""

    rate: float
    goodput: float
    testid: str


def find_limit(engine: Engine, scenario: str) -> Limit:
    """Ask without a pause for a moment, then ramp up to more than was answered.

    Raises:
        LabError: the stack did not break, or something else was the limit.
    """
    full = Load(
        "closed",
        scenario,
        vus=_FULL_VUS,
        duration=f"{_FULL_SECONDS}s",
        testid=new_testid("capacity"),
    )
    answered = measure(engine, full, Bounds()).document["answers_per_second"]
    if not answered:
        raise LabError(f"No request of {full.testid} was answered. See `lab logs backend`.")
    top = math.ceil(_RAMP_FACTOR * answered)
    ramp = Load(
        "breakpoint",
        scenario,
        rate=top,
        duration=f"{_RAMP_SECONDS}s",
        testid=new_testid("breakpoint"),
    )
    document = measure(engine, ramp, Bounds()).document
    found = document["break_point"]
    if found is None or document["limited_by"] == "generator_cpu":
        raise LabError(
            f"The break point of {scenario} is not known: {document['verdict']}. The generator "
            "must be the stronger side; try a dearer scenario, or LAB_NGINX_CACHE=off."
        )
    if not found["goodput"]:
        raise LabError(
            f"No answer to {scenario} came in time, however few were asked for: "
            f"{document['verdict']}. See where the time goes (lab profile), or try LAB_DETAIL=fast."
        )
    return Limit(found["rate"], found["goodput"], ramp.testid)
