"""What a long load may let grow in the native engine's stack, besides processes; and the memory of
its services.
"""

from collections.abc import Callable
from functools import partial

from load_lab.paths import current_state
from load_lab.settings import Settings
from load_lab.stack.engine import Engine
from load_lab.targets.reference.bookings import count_bookings
from load_lab.targets.subject import Folder, Growth

_MIB = 1024**2
# The limits in docker-compose.yml (a test compares them). Plain processes have no limit of memory,
# but are checked against the same values.
MEMORY_LIMITS = {
    "postgres": 1024 * _MIB,
    "redis": 384 * _MIB,
    "backend": 1024 * _MIB,
    "nginx": 1536 * _MIB,
}
# max_size in nginx/templates/cache, with 64 MiB of scratch files; a test compares them.
BASIC_CACHE_BYTES, CACHE_BYTES = (5 * 1024 + 64) * _MIB, (1024 + 256 + 64) * _MIB
# max_wal_size in postgres/postgresql.conf, which Postgres may exceed by a quarter under load.
LOG_AHEAD_BYTES = 5 * 1024 * _MIB
# Measured: 0.9 KB per booking with its guests, key, response and indexes; tables grow in steps.
BYTES_PER_BOOKING, TABLE_BYTES = 2048, 32 * _MIB
# A line of Nginx's access log; `lab k6` truncates it before each test. Other logs are cut at 20 MB.
BYTES_PER_REQUEST, LOG_BYTES = 400, 100 * _MIB
METRICS_BYTES, METRICS_BYTES_PER_HOUR = 100 * _MIB, 1024 * _MIB


def growth_of(engine: Engine, settings: Callable[[], Settings]) -> Growth:
    """Return the folders to which the services write, and the bookings."""
    state = current_state()

    def cache_bytes() -> int:
        return BASIC_CACHE_BYTES if settings().LAB_NGINX_CACHE == "basic" else CACHE_BYTES

    folders = {
        "cache": Folder(
            "cache directory, MiB",
            lambda: sorted(state.run.glob("cache-*")),
            lambda _: cache_bytes(),
            in_all=True,
        ),
        "log ahead": Folder(
            "Postgres's log, MiB",
            lambda: [state.postgres / "pg_wal"],
            lambda _: LOG_AHEAD_BYTES,
            in_all=True,
        ),
        "tables": Folder(
            "tables, MiB for {rows} bookings",
            lambda: [state.postgres / "base"],
            lambda load: TABLE_BYTES + BYTES_PER_BOOKING * load.rows,
        ),
        "logs": Folder(
            "logs, MiB for {requests} requests",
            lambda: [state.logs],
            lambda load: LOG_BYTES + BYTES_PER_REQUEST * load.requests,
        ),
        "metrics": Folder(
            "Prometheus's data, MiB",
            lambda: [state.data / "prometheus"],
            lambda load: METRICS_BYTES + METRICS_BYTES_PER_HOUR * load.seconds / 3600,
        ),
    }
    return Growth(folders, "bookings", partial(count_bookings, engine))
