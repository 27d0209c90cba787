"""What the errors in the logs of the app and of Postgres tell about failed requests."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from load_lab.diagnosis import causes
from load_lab.diagnosis.causes import Cause
from load_lab.diagnosis.facts import Facts
from load_lab.machine.logged_errors import LoggedError
from load_lab.machine.observation import POSTGRES

_DISK_FULL: Final = Cause("a full disk", "free space: df -h, df -i; temporary files count, too")
_DISK_ERROR: Final = Cause("errors of a disk", "see the kernel's log: dmesg")
_SQLITE: Final = Cause(
    "SQLite's write lock",
    "shorter transactions, a longer timeout, journal_mode=WAL; or another database",
)
_APP_FILES: Final = Cause(
    "open files of the app", "raise its limit (ulimit -n, LimitNOFILE), or close connections"
)
_THREADS: Final = Cause("limit of threads", "raise it (ulimit -u, pids_limit), or use a pool")
_LOCAL_PORTS: Final = Cause("local ports", "keep connections open, instead of one per request")
_DEADLOCKS: Final = Cause("deadlocks", "lock rows in the same order, or in shorter transactions")
_CONFLICTS: Final = Cause(
    "serialization failures", "shorter transactions, a lower isolation level, or retries"
)
_READ_ONLY: Final = Cause("a database that is read-only", "write to the primary; see its disk")
_RESTART: Final = Cause("a restart of Postgres", "see its log: `lab logs postgres`")
_REFUSED: Final = Cause(
    "a service that the app connects to, and that refuses connections",
    "see which in the app's log, and whether it runs",
)
_NAMES: Final = Cause("resolution of host names", "see the app's DNS server; or use an address")
_MYSQL_CONNECTIONS: Final = Cause("MySQL's max_connections", "a pool, or raise it")
_REDIS_MEMORY: Final = Cause("Redis's maxmemory", "raise it, or choose a maxmemory-policy")
_REDIS_CLIENTS: Final = Cause("Redis's maxclients", "a pool, or raise it")
_REDIS_DISK: Final = Cause("Redis can't save its data", "see its log, and its disk")
_STATEMENTS: Final = Cause(
    "time limit of statements", "cheaper statements; or a longer statement_timeout"
)
_LOCKS: Final = Cause(
    "time limit of locks", "shorter transactions; see who holds the locks: pg_locks"
)

# By the code, the message or the class of an error. No load on the CPUs causes these.
STATES: Final = {
    "errno 28": _DISK_FULL,
    "errno 122": _DISK_FULL,
    "53100": _DISK_FULL,
    "database or disk is full": _DISK_FULL,
    "MySQL 1021": _DISK_FULL,
    "errno 5": _DISK_ERROR,
    "58030": _DISK_ERROR,
    "disk I/O error": _DISK_ERROR,
    "25006": _READ_ONLY,
    "errno 30": _READ_ONLY,
    "attempt to write a readonly database": _READ_ONLY,
    "Redis READONLY": _READ_ONLY,
    "Redis OOM": _REDIS_MEMORY,
    "Redis MISCONF": _REDIS_DISK,
    "gaierror": _NAMES,
}
CAUSES: Final = {
    "database is locked": _SQLITE,
    "database table is locked": _SQLITE,
    "53300": causes.MAX_CONNECTIONS,
    "MySQL 1040": _MYSQL_CONNECTIONS,
    "Redis maxclients": _REDIS_CLIENTS,
    "errno 24": _APP_FILES,
    "can't start new thread": _THREADS,
    "errno 99": _LOCAL_PORTS,
    "errno 12": causes.MEMORY,
    "53200": causes.MEMORY,
    "40P01": _DEADLOCKS,
    "MySQL 1213": _DEADLOCKS,
    "40001": _CONFLICTS,
    "57P01": _RESTART,
    "57P02": _RESTART,
    "57P03": _RESTART,
    "errno 111": _REFUSED,
}
# An overload causes them, too: they are named where nothing is full.
SYMPTOMS: Final = {
    "57014": _STATEMENTS,
    "MySQL 3024": _STATEMENTS,
    "55P03": _LOCKS,
    "MySQL 1205": _LOCKS,
    "psycopg_pool.PoolTimeout": causes.POOL,
    "sqlalchemy.exc.TimeoutError": causes.POOL,
}
# Logged errors per failed request: with fewer, most requests failed otherwise; with more, most
# errors failed no request, since the app tried again.
_LEAST, _MOST = 0.5, 4
_SHOWN = 3


def logged_texts(facts: Facts) -> tuple[str, ...]:
    """Return the most frequent logged errors in words."""
    errors, left_out = facts.logged.errors, facts.logged.left_out
    texts = [f"{_where(one)} has {_what(one)} {one.count:,} times" for one in errors[:_SHOWN]]
    more = len(errors[_SHOWN:]) + left_out
    return (*texts, f"{more} more kinds of errors in the logs") if more else tuple(texts)


def logged_causes(facts: Facts, rows: Mapping[str, Cause]) -> Iterator[tuple[Cause, str]]:
    """Yield those causes of `rows` that the logs give for at least half of the failed requests."""
    if not facts.by_errors:
        return
    # The same failure is in the log of the app and in that of Postgres.
    by_source: dict[Cause, Counter[str]] = defaultdict(Counter)
    first: dict[Cause, LoggedError] = {}
    for error in facts.logged.errors:
        keys = (error.code, error.message, error.kind)
        if cause := next((rows[key] for key in keys if key in rows), None):
            by_source[cause][error.source] += error.count
            first.setdefault(cause, error)
    counts = {cause: max(each.values()) for cause, each in by_source.items()}
    for cause, count in sorted(counts.items(), key=lambda item: -item[1]):
        if _LEAST * facts.failed <= count <= _MOST * facts.failed:
            error = first[cause]
            yield (
                cause,
                f"{_where(error)} has {_what(error)} {count:,} times; "
                f"{facts.failed:,} requests failed",
            )


def _where(error: LoggedError) -> str:
    return "Postgres's log" if error.source == POSTGRES else "the app's log"


def _what(error: LoggedError) -> str:
    details = ": ".join(part for part in (error.code, error.message) if part)
    return f"{error.kind} ({details})" if details else error.kind
