"""The causes that can be named: what each means, and what would move it."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Cause:
    """A cause: its name in results, and what to do next."""

    name: str
    remedy: str


ONE_REQUEST: Final = Cause(
    "none: a single request already exceeds the limit",
    "make that request faster: `lab profile` shows where its time goes",
)
VIRTUAL_USERS: Final = Cause(
    "virtual users of the load", "more of them: MAX_VUS=300 lab k6 …, and memory for them"
)
GENERATOR: Final = Cause(
    "CPU of the load generator",
    "more CPUs for it (LAB_LOAD_CPUS) and no quota, or several generators",
)
OTHERS: Final = Cause("CPU taken by other programs", "stop them, and measure again")
STEAL: Final = Cause(
    "CPU taken by the hypervisor", "measure again on a quiet machine, or one of your own"
)
_LARGER_QUOTA: Final = "a larger quota (cpus: of its container)"
QUOTA: Final = Cause("CPU quota of the backend", _LARGER_QUOTA)
MEMORY: Final = Cause("memory", "more memory (mem_limit of its container), or fewer workers")
REQUEST_LIMIT: Final = Cause(
    "rate limit (429)", "raise it: LAB_NGINX_POST_RATE, `limit_req`, or the API's throttling"
)
NGINX_CONNECTIONS: Final = Cause("Nginx's worker_connections", "raise worker_connections")
NGINX_FILES: Final = Cause(
    "Nginx's open files", "raise worker_rlimit_nofile: a connection needs one or two"
)
MAX_CONNECTIONS: Final = Cause(
    "Postgres's max_connections", "a pool (LAB_DB_POOL), or raise LAB_DB_MAX_CONNECTIONS"
)
BACKEND_CPU: Final = Cause(
    "CPU of the backend", "cheaper code or a cache; `lab profile` shows the code; or more CPUs"
)
GIL: Final = Cause(
    "one CPU per process (Python's GIL)", "more processes: LAB_WORKERS, while CPUs are idle"
)
EVENT_LOOP: Final = Cause(
    "one thread per process: a blocked event loop",
    "async libraries in async views; or more processes. See what blocks it: py-spy dump",
)
POSTGRES_CPU: Final = Cause(
    "CPU of Postgres", "cheaper queries: pg_stat_statements and EXPLAIN show which need an index"
)
REDIS_CPU: Final = Cause("CPU of Redis", "fewer or smaller commands, or a second Redis")
POSTGRES: Final = Cause(
    "Postgres, or the way to it", "see what its sessions wait for: pg_stat_activity"
)
NGINX_CPU: Final = Cause("CPU of Nginx", "more CPUs, or smaller responses")
SLOTS: Final = Cause(
    "worker slots", "threads or an async server, more workers (LAB_WORKERS), fewer round trips"
)
POOL: Final = Cause("connection pool", "a larger pool: LAB_DB_POOL")
PROCESS_LOCK: Final = Cause(
    "a lock or a queue inside the server's processes", "see which: py-spy dump"
)
FILE_LOCK: Final = Cause(
    "a lock of a file", "shorter work under it, or more files; more workers do not help"
)
DISK: Final = Cause("disk of the server", "fewer or smaller reads and writes, or a quicker disk")
SERIAL: Final = Cause(
    "something in the app that serves one request at a time",
    "find it: py-spy dump; more workers do not help",
)
# Nothing is named by it.
UNSEEN: Final = Cause(
    "not visible: what requests wait for inside the server", "see which: py-spy dump"
)
ROW_LOCKS: Final = Cause(
    "row locks", "shorter transactions, or rows that fewer requests share; more workers do not help"
)
TABLE_LOCKS: Final = Cause(
    "a lock of a table", "see who holds it: pg_locks; a migration, VACUUM FULL or LOCK TABLE"
)
ADVISORY_LOCKS: Final = Cause("advisory locks", "see who holds them: pg_locks; or more keys")
WAL: Final = Cause(
    "flush of Postgres's write-ahead log", "a faster disk, fewer commits, or synchronous_commit off"
)
POSTGRES_IO: Final = Cause(
    "disk of Postgres", "more shared_buffers or work_mem, an index, or a quicker disk"
)
POSTGRES_INTERNAL: Final = Cause(
    "Postgres's internal locks", "see wait_event in pg_stat_activity: fewer sessions, or partitions"
)
REDIS: Final = Cause("response time of Redis", "see its SLOWLOG, and the network to it")
NETWORK: Final = Cause(
    "network delay × round trips to Postgres", "fewer queries per request, or a nearer Postgres"
)
CLIENTS: Final = Cause(
    "the way between clients and server: network, or Nginx",
    "smaller responses, a quicker network; or see what Nginx waits for: its cache's locks",
)
OUTSIDE: Final = Cause("response time of another program", "see which: a timeout, or a cache")
_BY_NAME: Final = {each.name: each for each in vars().copy().values() if isinstance(each, Cause)}
NAMES: Final = frozenset(_BY_NAME)


def remedy_of(name: str) -> str:
    """Return what to do next about the cause of that name."""
    known = _BY_NAME.get(name)
    return known.remedy if known else _OF_A_SERVICE


_OF_A_SERVICE = "cheaper or fewer requests to it, or more CPUs"


# How the names of these two begin.
BEGINNINGS: Final = ("CPU quota of ", "CPU of ")


def quota_of(service: str) -> Cause:
    """Return the cause of a service whose CPU quota is used up."""
    return Cause(f"CPU quota of {service}", _LARGER_QUOTA)


def cpu_of(service: str) -> Cause:
    """Return the cause of a service of a target of the user's own."""
    return Cause(f"CPU of {service}", _OF_A_SERVICE)
