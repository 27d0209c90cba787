"""The rate at which a target is full, by a quiet part of a load (the utilization law)."""

from dataclasses import dataclass
from typing import Final

from load_lab.diagnosis import causes
from load_lab.diagnosis.conditions import TAKEN
from load_lab.diagnosis.facts import Facts
from load_lab.diagnosis.period import Period
from load_lab.diagnosis.split import COMPUTING, LOCKS, Place, Split, split_of

# Of a request's demand, what remains in any case when it wakes no CPU: a short request needs little
# of what was in the caches.
_LEAST_AWAKE = 2 / 3
# Of a request's time: so much must be CPU time, or so little a wait for another request.
_EXPLAINED, _BEHIND_ANOTHER = 0.8, 0.2
_RESOURCES = (causes.GIL.name, causes.SLOTS.name)
_QUEUES: Final[tuple[Place, ...]] = ("process", "file", *LOCKS)


@dataclass(frozen=True)
class Prediction:
    """A rate per second, or why there is none."""

    rate: float | None = None
    why: str = ""


def predicted_rate(facts: Facts, cause: str | None = None) -> Prediction:
    """Return the rate at which the busiest resource is full: demand is busy share × servers ÷
    throughput, and does not change with the load, but for the CPU time that waking adds while CPUs
    sleep between requests. What else requests wait for, such as the `cause` of a break, may be full
    earlier.
    """
    calm = facts.half
    if calm is None or not calm.answered:
        return Prediction()
    is_resource = cause is None or cause in _RESOURCES or cause.startswith("CPU of ")
    why = _unexplained(facts, calm) or ("" if is_resource else f"{cause} is no CPU")
    if why:
        return Prediction(why=why)
    resources = [
        (facts.cpus, facts.cpus * calm.cpu.target),
        (facts.processes, calm.server_cpu),
        (facts.slots, calm.in_flight),
    ]
    rates = [
        servers / _demand_awake(facts, calm, busy / calm.answered)
        for servers, busy in resources
        if servers and busy
    ]
    return Prediction(round(min(rates), 2)) if rates else Prediction()


def _unexplained(facts: Facts, calm: Period) -> str:
    """Return why a request's time does not tell what will be full; "" if it does."""
    split = split_of(calm, facts.slots)
    if calm.cpu.taken > TAKEN:
        return f"other programs used {calm.cpu.taken:.0%} of the target's CPUs"
    has_slots = facts.slots is not None and split.share(*_QUEUES) <= _BEHIND_ANOTHER
    if has_slots or split.share(*COMPUTING) >= _EXPLAINED or not split.total:
        return ""
    return f"a request waits {_waits(split, calm.answered)} ms for what is no CPU"


def _waits(split: Split, rate: float) -> str:
    times = split.milliseconds(rate)
    total, computing = sum(times.values()), sum(times.get(place, 0.0) for place in COMPUTING)
    return f"{total - computing:,.0f} of {total:,.0f}"


def _demand_awake(facts: Facts, calm: Period, demand: float) -> float:
    """Return the demand of a request that finds its CPU awake. k6 spaces requests evenly, so
    each of them wakes a CPU, unless these are too busy to sleep for long.
    """
    asleep = min(1.0, 2 * (1 - calm.cpu.target))
    return max(demand - asleep * facts.wake, _LEAST_AWAKE * demand)
