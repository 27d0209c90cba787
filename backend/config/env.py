"""The only reader of the environment. Names, values and defaults are in `.env.example`, the values
that have names of their own in `config.kinds`.

The engines pass every setting; run by hand, `manage.py` takes what is missing from `.env.example`.
BACKEND_SETTINGS_FILE, where it is given, goes over both: a running server reads it again on reload.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from django.core.exceptions import ImproperlyConfigured

from config.kinds import (
    AsgiBeside,
    Direction,
    Implementation,
    LatencyBy,
    LocalCache,
    NginxCache,
    RedisCache,
    Server,
    Switch,
    Views,
)

T = TypeVar("T")

_EXAMPLE = Path(__file__).resolve().parents[2] / ".env.example"


class EnvError(ImproperlyConfigured):
    """A variable is missing, or has a value that is not known."""


@dataclass(frozen=True)
class LabSettings:
    """The settings that this process runs with; fields are the variables' names in lower case."""

    lab_server: Server
    lab_workers: int
    lab_threads: int
    lab_asgi_beside: AsgiBeside
    lab_workbench: Switch
    lab_views: Views
    lab_websockets: Switch
    lab_detail: Implementation
    lab_booking: Implementation
    lab_local_cache: LocalCache
    lab_redis_cache: RedisCache
    lab_nginx_cache: NginxCache
    lab_nginx_cache_ttl: str
    lab_latency_ms: int
    lab_latency_direction: Direction
    lab_latency_by: LatencyBy
    lab_shed: Switch
    lab_db_pool: int | None
    lab_conn_max_age: int
    lab_db_max_connections: int
    lab_timeout: int
    lab_db_statement_timeout: int
    lab_db_lock_timeout: int
    lab_db_connect_timeout: int

    @property
    def delayed_by_proxy(self) -> bool:
        """Whether Postgres is to be reached, and the server reached, by way of toxiproxy."""
        return self.lab_latency_ms > 0 and self.lab_latency_by is LatencyBy.TOXIPROXY

    def as_env(self) -> dict[str, str]:
        """As environment variables, a missing pool as `off`."""
        return {
            name.upper(): "off" if value is None else str(value)
            for name, value in vars(self).items()
        }


def lab_settings() -> LabSettings:
    """The settings in force.

    Raises:
        EnvError: one is missing or has a value that is not known.
    """
    return LabSettings(
        lab_server=_choice("LAB_SERVER", Server),
        lab_workers=_number("LAB_WORKERS", 1, 256),
        lab_threads=_number("LAB_THREADS", 1, 1024),
        lab_asgi_beside=_choice("LAB_ASGI_BESIDE", AsgiBeside),
        lab_workbench=_choice("LAB_WORKBENCH", Switch),
        lab_views=_choice("LAB_VIEWS", Views),
        lab_websockets=_choice("LAB_WEBSOCKETS", Switch),
        lab_detail=_choice("LAB_DETAIL", Implementation),
        lab_booking=_choice("LAB_BOOKING", Implementation),
        lab_local_cache=_choice("LAB_LOCAL_CACHE", LocalCache),
        lab_redis_cache=_choice("LAB_REDIS_CACHE", RedisCache),
        lab_nginx_cache=_choice("LAB_NGINX_CACHE", NginxCache),
        lab_nginx_cache_ttl=_duration("LAB_NGINX_CACHE_TTL"),
        lab_latency_ms=_number("LAB_LATENCY_MS", 0, 10_000),
        lab_latency_direction=_choice("LAB_LATENCY_DIRECTION", Direction),
        lab_latency_by=_choice("LAB_LATENCY_BY", LatencyBy),
        lab_shed=_choice("LAB_SHED", Switch),
        lab_db_pool=None if text("LAB_DB_POOL") == "off" else _number("LAB_DB_POOL", 1, 1000),
        lab_conn_max_age=_number("LAB_CONN_MAX_AGE", 0, 86_400),
        lab_db_max_connections=_number("LAB_DB_MAX_CONNECTIONS", 10, 10_000),
        lab_timeout=_number("LAB_TIMEOUT", 1, 3600),
        lab_db_statement_timeout=_number("LAB_DB_STATEMENT_TIMEOUT", 1, 3600),
        lab_db_lock_timeout=_number("LAB_DB_LOCK_TIMEOUT", 1, 3600),
        lab_db_connect_timeout=_number("LAB_DB_CONNECT_TIMEOUT", 1, 3600),
    )


def text(name: str) -> str:
    """The variable `name`.

    Raises:
        EnvError: it is not set.
    """
    value = {**_defaults(), **os.environ, **_settings_file()}.get(name)
    if value is None:
        raise EnvError(f"{name} is not set. .env.example says what it is for.")
    return value


def number(name: str) -> int:
    """The variable `name` as a whole number that is not negative."""
    return _number(name, 0, 2**31)


def is_asgi() -> bool:
    """Whether this process was loaded to be called by ASGI (config/asgi.py)."""
    return os.environ.get("BACKEND_INTERFACE") == "asgi"


def address(name: str) -> tuple[str, str] | None:
    """Host and port of the variable `name`, written host:port; None where it is not set."""
    host, _, port = os.environ.get(name, "").rpartition(":")
    return (host, port) if host else None


def role() -> str:
    """Which server this process is of (config/serving.py): `backend`, or `beside` it."""
    return os.environ.get("BACKEND_ROLE", "backend")


def metrics_folder() -> Path | None:
    """Where the processes of this process' server count; None outside of one."""
    folder = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    return Path(folder) if folder else None


def cpus(name: str) -> set[int]:
    """The CPU numbers of the list `name`, such as 0-2,5; none where it is empty or not set.

    Of the environment alone: the settings file has what was asked for, not what `lab` chose.
    """
    found: set[int] = set()
    for part in filter(None, os.environ.get(name, "").split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def secret(name: str) -> str:
    """The secret `name`, from its file in BACKEND_SECRETS_DIR. There is no default.

    Raises:
        EnvError: the file can't be read.
    """
    folder = text("BACKEND_SECRETS_DIR")
    try:
        return Path(folder, name).read_text().strip()
    except OSError as error:
        raise EnvError(
            f"The secret {name} can't be read in BACKEND_SECRETS_DIR={folder} ({error.strerror}). "
            f"Make it: python -m config.secrets {folder}"
        ) from None


def _choice(name: str, kind: type[T]) -> T:
    return _parsed(name, kind, ", ".join(str(member) for member in kind))  # type: ignore[attr-defined]


def _number(name: str, least: int, most: int) -> int:
    value = _parsed(name, int, f"a whole number from {least} to {most}")
    if not least <= value <= most:
        raise _unknown(name, str(value), f"a whole number from {least} to {most}")
    return value


def _duration(name: str) -> str:
    value = text(name)
    try:
        fits = 1 <= duration_seconds(value) <= 3600
    except ValueError:
        fits = False
    if not fits:
        raise _unknown(name, value, "a duration from 1s to 1h, such as 1s, 30s or 5m")
    return value


def duration_seconds(value: str) -> int:
    """Seconds of a duration such as 1s, 5m or 1h.

    Raises:
        ValueError: it is none.
    """
    unit = {"s": 1, "m": 60, "h": 3600}.get(value[-1:])
    if unit is None or not value[:-1].isdecimal():
        raise ValueError(value)
    return int(value[:-1]) * unit


def _parsed(name: str, parse: Callable[[str], T], allowed: str) -> T:
    value = text(name)
    try:
        return parse(value)
    except ValueError:
        raise _unknown(name, value, allowed) from None


def _unknown(name: str, value: str, allowed: str) -> EnvError:
    return EnvError(f"{name}={value} is not known. Allowed: {allowed}. See .env.example.")


@cache
def _defaults() -> dict[str, str]:
    return dict(_assignments(_EXAMPLE)) if _EXAMPLE.exists() else {}


def _settings_file() -> dict[str, str]:
    """Read each time: gunicorn's master keeps this module over a reload."""
    name = os.environ.get("BACKEND_SETTINGS_FILE")
    return dict(_assignments(Path(name))) if name else {}


def _assignments(path: Path) -> Iterator[tuple[str, Any]]:
    for line in path.read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not name.startswith("#"):
            yield name, value
