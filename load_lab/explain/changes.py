"""What proves a cause: a change of the stack, and how it must move the throughput. Pure."""

from dataclasses import dataclass, replace

from load_lab.diagnosis import causes
from load_lab.diagnosis.facts import worker_slots
from load_lab.settings import Settings

# Workers that compute have a queue of about so many for each CPU, from which a busy loop takes one
# part. More than this share of the throughput is left.
_MOST_LEFT = 0.85
# Quick code does at least so much more, on the hotel API.
_QUICK_FACTOR = 1.5


@dataclass(frozen=True)
class Change:
    """A change: settings, or statements for Postgres and those that undo them, a busy loop on
    each of the target's CPUs, or another route of the load. `factor` is how the throughput must
    move if its cause is the limit. `ends`: what it ends besides, which may be the cause, and what
    to do then.
    """

    cause: str
    what: str
    factor: float
    settings: tuple[str, ...] = ()
    statements: tuple[str, ...] = ()
    undo: tuple[str, ...] = ()
    busy_loops: bool = False
    route: str | None = None
    ends: tuple[str, str] | None = None

    def changes_the_same(self, other: "Change") -> bool:
        return replace(self, cause=other.cause, what=other.what, factor=other.factor) == other


@dataclass(frozen=True)
class Work:
    """What the load sends: a scenario, and which route of the workbench."""

    scenario: str
    route: str | None = None


def change_for(cause: str, settings: Settings, share: float, work: Work) -> Change | None:
    """Return the change that proves a cause, which has `share` of a request's time; None if nothing
    of the stack can be changed to prove it.
    """
    change = _GIVING.get(cause)
    return change(settings, share, work) if change else None


def control_of(
    change: Change, candidates: list[tuple[str, float]], settings: Settings, work: Work
) -> Change:
    """Return the change that must not move the throughput as much: that of the next candidate, else
    of what the first one leaves out: the CPU, or the number of workers.
    """
    for name, share in candidates:
        # Not the quick code: it needs fewer round trips, too.
        other = _less_cpu(name) if name in _COMPUTES else change_for(name, settings, share, work)
        if other and name != change.cause and not other.changes_the_same(change):
            return other
    if change.cause in _COMPUTES:
        return _slots(settings, 1.0, work) or _processes(settings) or _wal(settings, 1.0, work)
    if change.cause == causes.GIL.name:
        # A busy loop would take the CPU that the process needs.
        return _slots(settings, 1.0, work) or _wal(settings, 1.0, work)
    return _less_cpu(causes.BACKEND_CPU.name)


def _processes(settings: Settings) -> Change | None:
    if settings.LAB_SERVER in _ONE_PROCESS:
        return None
    return _doubled(causes.GIL.name, "LAB_WORKERS", settings, 1.7)


def _doubled(cause: str, name: str, settings: Settings, factor: float = 2.0) -> Change:
    """Return the change that doubles a setting."""
    value = int(settings.as_env()[name])
    return Change(cause, f"{name}: {value} → {2 * value}", factor, (f"{name}={2 * value}",))


# They ignore LAB_WORKERS.
_ONE_PROCESS = ("daphne",)
_COMPUTES = (causes.BACKEND_CPU.name, causes.POSTGRES_CPU.name)


def _slots(settings: Settings, _share: float, _work: Work) -> Change | None:
    slots = worker_slots(settings.LAB_SERVER, settings.LAB_WORKERS, settings.LAB_THREADS)
    if slots is None:
        return None
    name = "LAB_THREADS" if settings.LAB_SERVER == "gunicorn-gthread" else "LAB_WORKERS"
    return _doubled(causes.SLOTS.name, name, settings)


def _row_locks(_settings: Settings, _share: float, work: Work) -> Change | None:
    # Another route may wait for another lock.
    if (work.scenario, work.route) != ("workbench", "row_lock"):
        return None
    return Change(
        causes.ROW_LOCKS.name, "the same load on random rows", 2.0, route="random_row_lock"
    )


def _gil(settings: Settings, _share: float, _work: Work) -> Change | None:
    if settings.LAB_SERVER in _ONE_PROCESS:
        return None
    workers, threads = settings.LAB_WORKERS, max(settings.LAB_THREADS // 2, 1)
    return Change(
        causes.GIL.name,
        f"LAB_WORKERS: {workers} → {2 * workers}, LAB_THREADS: {settings.LAB_THREADS} → {threads}",
        1.7,
        (f"LAB_WORKERS={2 * workers}", f"LAB_THREADS={threads}"),
    )


def _pool(settings: Settings, _share: float, _work: Work) -> Change | None:
    if settings.LAB_DB_POOL == "off":
        return None
    return _doubled(causes.POOL.name, "LAB_DB_POOL", settings)


def _network(settings: Settings, share: float, _work: Work) -> Change | None:
    delay = settings.LAB_LATENCY_MS
    if delay < 2:
        return None
    return Change(
        causes.NETWORK.name,
        f"LAB_LATENCY_MS: {delay} → {delay // 2}",
        1 / (1 - share / 2),
        (f"LAB_LATENCY_MS={delay // 2}",),
    )


def _wal(_settings: Settings, share: float, _work: Work) -> Change:
    return Change(
        causes.WAL.name,
        "synchronous_commit off, for this measurement",
        1 / max(1 - share, 0.2),
        statements=("ALTER SYSTEM SET synchronous_commit = off", "SELECT pg_reload_conf()"),
        undo=("ALTER SYSTEM RESET synchronous_commit", "SELECT pg_reload_conf()"),
    )


def _backend_cpu(settings: Settings, share: float, work: Work) -> Change:
    code = {"detail": "LAB_DETAIL", "booking": "LAB_BOOKING"}.get(work.scenario)
    if code and settings.as_env()[code] == "naive":
        return Change(
            causes.BACKEND_CPU.name,
            f"the quick code, {code}=fast",
            _QUICK_FACTOR,
            (f"{code}=fast",),
        )
    return _less_cpu(causes.BACKEND_CPU.name)


def _less_cpu(cause: str) -> Change:
    return Change(cause, "a busy loop on each of the target's CPUs", _MOST_LEFT, busy_loops=True)


def _nginx_limit(settings: Settings, _share: float, _work: Work) -> Change:
    return _doubled(causes.REQUEST_LIMIT.name, "LAB_NGINX_POST_RATE", settings)


_RESTART_OF_POSTGRES = (
    "It restarts Postgres, which ends the connections of other programs, and the locks that they "
    "hold",
    "Repeat the load, and see in pg_stat_activity meanwhile which programs have connections; end "
    "those, and measure again",
)


def _max_connections(settings: Settings, _share: float, _work: Work) -> Change:
    change = _doubled(causes.MAX_CONNECTIONS.name, "LAB_DB_MAX_CONNECTIONS", settings, 1.5)
    return replace(change, ends=_RESTART_OF_POSTGRES)


_GIVING = {
    causes.SLOTS.name: _slots,
    causes.ROW_LOCKS.name: _row_locks,
    causes.GIL.name: _gil,
    causes.POOL.name: _pool,
    causes.NETWORK.name: _network,
    causes.WAL.name: _wal,
    causes.BACKEND_CPU.name: _backend_cpu,
    causes.POSTGRES_CPU.name: lambda *_: _less_cpu(causes.POSTGRES_CPU.name),
    causes.REQUEST_LIMIT.name: _nginx_limit,
    causes.MAX_CONNECTIONS.name: _max_connections,
}
