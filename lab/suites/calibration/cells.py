"""What is measured: which server, which load, and what the lab has to say of it."""

from dataclasses import dataclass, replace
from typing import Literal

from lab.errors import UsageError
from lab.load.k6 import Load
from lab.suites.calibration.service_times import Law

Judge = Literal["times", "rate", "counts", "break", "limit", "spread"]

# What the queue bears, per second.
RATE = 200
# An answer of 20 ms then comes in the middle between two requests. At 200/s each comes just when k6
# begins another request, so that its time has k6's own work in it.
STEADY_RATE = 170
_TRIES = 3


@dataclass(frozen=True)
class Cell:
    """`seconds` of load, and how many in a quick look; `rate` is a ramp's top. `limit` is what the
    verdict must name, `starved` whether k6 gets next to no CPU.
    """

    name: str
    what: str
    law: Law
    profile: str
    seconds: int
    quick_seconds: int
    judged_by: tuple[Judge, ...]
    rate: int | None = None
    vus: int | None = None
    max_vus: int | None = None
    limit: str = "none"
    # Where it breaks, per second.
    breaks_at: float | None = None
    starved: bool = False
    repeats: int = 1
    # How often each may be measured until the machine is quiet enough for times.
    tries: int = 1

    def load(self, url: str, testid: str) -> Load:
        """The load as k6 is asked for it."""
        return Load(
            self.profile,
            "list",
            rate=self.rate,
            duration=f"{self.seconds}s",
            vus=self.vus,
            max_vus=self.max_vus,
            testid=testid,
            base_url=url,
            verified=False,
        )

    def quick(self) -> "Cell":
        """The same ramp or rate for a shorter time, and once: percentiles are less certain."""
        repeats = min(self.repeats, 2)
        return replace(self, seconds=self.quick_seconds, repeats=repeats, tries=1)


# 4 virtual users can't ask for more than 200/s, each for one answer of 20 ms at a time. How much
# less goes by how arrivals fall: one that finds none free is dropped, and they wait for the next.
_QUEUE_MS, _FIXED_MS, _USERS = 1000 / RATE, 20, 4
# Enough users for a stall of half a second, so that they are not what gives way.
_ROOMY_RATE, _ROOMY_USERS = 800, 400

CELLS = (
    Cell(
        "fixed",
        "every answer takes the same time",
        Law("fixed", _FIXED_MS),
        *("hold", 20, 8, ("times", "rate", "counts", "limit")),
        rate=STEADY_RATE,
        tries=_TRIES,
    ),
    Cell(
        "exponential",
        "answers take very different times",
        Law("exponential", 50),
        *("hold", 20, 8, ("times", "rate", "counts", "limit")),
        rate=STEADY_RATE,
        tries=_TRIES,
    ),
    Cell(
        "queue",
        "a target of known capacity",
        Law("queue", _QUEUE_MS),
        *("breakpoint", 30, 16, ("break", "counts", "limit")),
        rate=400,
        limit="target",
        breaks_at=RATE,
    ),
    Cell(
        "capped",
        "virtual users that are all waiting",
        Law("fixed", _FIXED_MS),
        *("breakpoint", 20, 12, ("counts", "limit")),
        rate=600,
        max_vus=_USERS,
        limit="vu_cap",
    ),
    Cell(
        "roomy",
        "neither is the limit",
        Law("fixed", _FIXED_MS),
        *("breakpoint", 15, 8, ("counts", "limit")),
        rate=_ROOMY_RATE,
        max_vus=_ROOMY_USERS,
    ),
    Cell(
        "starved",
        "the same, and another program has the generator's CPU",
        Law("fixed", _FIXED_MS),
        *("breakpoint", 15, 12, ("counts", "limit")),
        rate=_ROOMY_RATE,
        max_vus=_ROOMY_USERS,
        limit="generator_cpu",
        starved=True,
    ),
    Cell(
        "repeated",
        "the same again and again: a target that computes",
        Law("work", 4),
        *("closed", 8, 3, ("counts", "limit", "spread")),
        vus=4,
        repeats=5,
    ),
)


def chosen(names: list[str], *, quick: bool) -> list[Cell]:
    """The cells of those names; all where none is named.

    Raises:
        UsageError: there is no such cell.
    """
    known = {cell.name: cell for cell in CELLS}
    for name in names:
        if name not in known:
            raise UsageError(f"There is no cell {name}. Known: {', '.join(known)}.")
    found = [cell for cell in CELLS if not names or cell.name in names]
    return [cell.quick() for cell in found] if quick else found
