"""What the diagnosis of a run needs to know, next to what was seen during it."""

from dataclasses import dataclass, field

from load_lab.diagnosis.period import Period
from load_lab.machine.logged_errors import NONE_LOGGED, LoggedErrors
from load_lab.results.limit import Limit
from load_lab.results.result import ErrorStart

_THREADED = {"gunicorn-sync": False, "gunicorn-gthread": True}


@dataclass(frozen=True)
class Facts:
    """A run that broke, or that its full generator ended. `saturated` is the period that decided;
    `begin` its first seconds, by what was seen in the server; `early` a few more, by k6's counts;
    and `half` the period at about half of the rate that broke.

    `slots`: requests that the server works on at once, `processes` of it, `pool`: database
    connections that they share; None where that is unlimited or unknown. `wake` is the CPU time in
    seconds by which a request takes longer that wakes one of the target's `cpus`.
    `rejections`: requests that Nginx refused, by reason, of `failed` ones; `logged`: errors in the
    logs. `observed`: whether the target's processes are seen. `began`: when errors began, if that
    was one moment for most operations, whose answers stayed quick; `unloaded`: the status of most
    errors, if no load causes it; `advice`: what to do about errors. `p95_limit` and `first_p95` in
    seconds.
    """

    saturated: Period
    begin: Period | None = None
    early: Period | None = None
    half: Period | None = None
    p95_limit: float = 1.0
    first_p95: float | None = None
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


def worker_slots(server: str, workers: int, threads: int) -> int | None:
    """Return how many requests a server works on at once; None for ASGI, which has no limit."""
    if server not in _THREADED:
        return None
    return workers * (threads if _THREADED[server] else 1)
