"""The cells: a server, a load, and the results that the lab must report."""

from dataclasses import dataclass, replace
from typing import Literal

from load_lab.calibrate.service_times import ServiceTime
from load_lab.errors import UsageError
from load_lab.load.load import Load
from load_lab.results.limit import Limit

CheckKind = Literal["times", "rate", "counts", "break", "limit", "spread"]

# Capacity of the queue, per second.
RATE = 200
# With this rate a response after 20 ms arrives in the middle between two requests. At 200/s it
# would arrive while k6 starts another request, and its time would include k6's own work.
STEADY_RATE = 170
_TRIES = 3


@dataclass(frozen=True)
class Cell:
    """A load of `seconds`, or `quick_seconds` with --quick; `rate` is a ramp's top. `limit` is the
    expected bottleneck in the verdict, `starved` whether k6 gets almost no CPU.
    """

    name: str
    what: str
    service_time: ServiceTime
    profile: str
    seconds: int
    quick_seconds: int
    checks: tuple[CheckKind, ...]
    rate: int | None = None
    vus: int | None = None
    max_vus: int | None = None
    limit: Limit = Limit.NONE
    # Expected break point, per second.
    breaks_at: float | None = None
    starved: bool = False
    repeats: int = 1
    generators: int = 1
    # Maximum number of measurements until the machine is quiet enough for response times.
    tries: int = 1

    def load(self, testid: str) -> Load:
        """Return the load for k6."""
        return Load(
            self.profile,
            "list",
            rate=self.rate,
            duration=f"{self.seconds}s",
            vus=self.vus,
            max_vus=self.max_vus,
            testid=testid,
            generators=self.generators,
            # Those of a single one are in its summary.
            samples=self.generators > 1,
        )

    def quick(self) -> "Cell":
        """Return the cell with a shorter load, at most two repeats and one try: less accurate."""
        repeats = min(self.repeats, 2)
        return replace(self, seconds=self.quick_seconds, repeats=repeats, tries=1)


# 4 virtual users can send at most 200/s: each waits 20 ms for a response. How much less depends on
# the arrivals: one that finds no free user is dropped, and the users wait for the next.
_QUEUE_MS, _FIXED_MS, _USERS = 1000 / RATE, 20, 4
# Enough users for a stall of half a second, so that they are not the limit.
_ROOMY_RATE, _ROOMY_USERS = 800, 400

CELLS = (
    Cell(
        "fixed",
        "every answer takes the same time",
        ServiceTime("fixed", _FIXED_MS),
        *("hold", 20, 8, ("times", "rate", "counts", "limit")),
        rate=STEADY_RATE,
        tries=_TRIES,
    ),
    Cell(
        "exponential",
        "answers take very different times",
        ServiceTime("exponential", 50),
        *("hold", 20, 8, ("times", "rate", "counts", "limit")),
        rate=STEADY_RATE,
        tries=_TRIES,
    ),
    Cell(
        "queue",
        "a target of known capacity",
        ServiceTime("queue", _QUEUE_MS),
        *("breakpoint", 30, 16, ("break", "counts", "limit")),
        rate=400,
        limit=Limit.TARGET,
        breaks_at=RATE,
    ),
    Cell(
        "capped",
        "virtual users that are all waiting",
        ServiceTime("fixed", _FIXED_MS),
        *("breakpoint", 20, 12, ("counts", "limit")),
        rate=600,
        max_vus=_USERS,
        limit=Limit.VIRTUAL_USERS,
    ),
    Cell(
        "roomy",
        "neither is the limit",
        ServiceTime("fixed", _FIXED_MS),
        *("breakpoint", 15, 8, ("counts", "limit")),
        rate=_ROOMY_RATE,
        max_vus=_ROOMY_USERS,
    ),
    Cell(
        "starved",
        "the same, and another program has the generator's CPU",
        ServiceTime("fixed", _FIXED_MS),
        *("breakpoint", 15, 12, ("counts", "limit")),
        rate=_ROOMY_RATE,
        max_vus=_ROOMY_USERS,
        limit=Limit.GENERATOR,
        starved=True,
    ),
    Cell(
        "repeated",
        "the same again and again: a target that computes",
        ServiceTime("work", 4),
        *("closed", 8, 3, ("counts", "limit", "spread")),
        vus=4,
        repeats=5,
    ),
)


def select_cells(names: list[str], *, quick: bool, generators: int) -> list[Cell]:
    """Return the cells of those names; all if none is given. That many k6 share each load.

    Raises:
        UsageError: a cell is unknown.
    """
    cells_by_name = {cell.name: cell for cell in CELLS}
    for name in names:
        if name not in cells_by_name:
            raise UsageError(f"There is no cell {name}. Known: {', '.join(cells_by_name)}.")
    selected = [cell for cell in CELLS if not names or cell.name in names]
    cells = [replace(cell, generators=generators) for cell in selected]
    return [cell.quick() for cell in cells] if quick else cells
