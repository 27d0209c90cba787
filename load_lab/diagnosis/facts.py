"""What the diagnosis of a run needs to know, next to what was seen during it."""

from dataclasses import dataclass, field
from functools import cached_property

from load_lab.diagnosis.period import Period
from load_lab.diagnosis.split import Split, split_of
from load_lab.machine.logged_errors import NONE_LOGGED, LoggedErrors
from load_lab.results.limit import Limit
from load_lab.results.result import ErrorStart

# Threads work all the time with this share of it; and that many more requests queue for them.
_ALL_THE_TIME, _QUEUED = 0.85, 1.2


@dataclass(frozen=True)
class Facts:
    """A run that broke, or that its full generator ended. `saturated` is the period that decided;
    `begin` its first seconds, by what was seen in the server; `early` a few more, by k6's counts;
    and `half` the period at about half of the rate that broke.

    `slots`: requests that the server works on at once, `processes` of it, `pool`: database
    connections that they share; None where that is unlimited or unknown. `alone`: how long a
    request takes without a queue. `wake` is the CPU time in seconds by which a request takes longer
    that wakes one of the target's `cpus`.
    `rejections`: requests that Nginx refused, by reason, of `failed` ones; `logged`: errors in the
    logs. `observed`: whether the target's processes are seen. `began`: when errors began, if that
    was one moment for most operations, whose answers stayed quick; `unloaded`: the status of most
    errors, if no load causes it; `advice`: what to do about errors. `p95_limit`, `first_p95` and
    `alone` in seconds.
    """

    saturated: Period
    begin: Period | None = None
    early: Period | None = None
    half: Period | None = None
    p95_limit: float = 1.0
    first_p95: float | None = None
    alone: float | None = None
    limited_by: Limit = Limit.TARGET
    slots: int | None = None
    processes: int | None = None
    pool: int | None = None
    max_connections: int | None = None
    cpus: int = 1
    wake: float = 0.0
    observed: bool = True
    rejections: dict[str, int] = field(default_factory=dict)
    logged: LoggedErrors = NONE_LOGGED
    failed: int = 0
    by_errors: bool = False
    began: ErrorStart | None = None
    unloaded: int | None = None
    advice: str = "see the log of what answered them"
    unseen: tuple[str, ...] = ()

    @cached_property
    def split(self) -> Split:
        return split_of(self.saturated, self.all_slots)

    @cached_property
    def all_slots(self) -> int | None:
        """Return the slots that are known; else those that are seen."""
        return self.slots or seen_slots(self.saturated)


def seen_slots(seen: Period) -> int | None:
    """Return the slots of a server whose settings are not known: its threads that work, while more
    requests are in it; or the requests that are in it, while others wait to be accepted. None if it
    waits for more responses than it has threads that wait: an event loop does.
    """
    inside, queued = seen.in_server or 0.0, seen.queued or 0.0
    if sum(seen.awaited.values()) > _QUEUED * seen.thread("outside") + 1:
        return None
    if seen.workers >= _ALL_THE_TIME and inside + queued >= _QUEUED * seen.workers:
        return max(round(seen.workers), 1)
    return max(round(inside), 1) if inside and queued >= 1 and not seen.workers else None
