"""Where an app says that its databases and caches are: its target file, or its Django settings."""

import json
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lab_settings.messages import shorten
from pydantic import BaseModel, TypeAdapter, ValidationError

from load_lab.errors import UsageError
from load_lab.targets.project_shell import printed_by_project

_SCRIPT = Path(__file__).with_name("django_databases.py")
# A project may import for long, but no load should wait for it.
_TIMEOUT_SECONDS: Final = 60
# Of libpq, as Debian and as its source have it.
_SOCKET_FOLDERS: Final = ("/var/run/postgresql", "/tmp")  # noqa: S108
_PORTS: Final = {"postgresql": 5432, "mysql": 3306, "oracle": 1521, "microsoft": 1433}
# Of a Postgres to the database that is asked, without the one that asks.
COUNT_CONNECTIONS: Final = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
    "AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
)
_MYSQL_SOCKETS: Final = ("/var/run/mysqld/mysqld.sock", "/tmp/mysql.sock")  # noqa: S108


@dataclass(frozen=True, order=True)
class Place:
    """Where a service listens, as its client sees it: address and port, or a Unix socket's path and
    0.
    """

    host: str
    port: int = 0

    def __str__(self) -> str:
        return f"{self.host}:{self.port}" if self.port else self.host


@dataclass(frozen=True)
class Declared:
    """The places of an app's databases and caches; `unknown` names the databases whose place is not
    known, `why` says why nothing is known of them.
    """

    databases: tuple[Place, ...] = ()
    caches: tuple[Place, ...] = ()
    unknown: tuple[str, ...] = ()
    why: str = ""

    @property
    def is_complete(self) -> bool:
        """Return whether the place of every database is known; of one in a file, there is none."""
        return not self.why and not self.unknown

    def with_others(self, other: "Declared") -> "Declared":
        """Return the places of both."""
        return Declared(
            _once((*self.databases, *other.databases)),
            _once((*self.caches, *other.caches)),
            tuple(dict.fromkeys((*self.unknown, *other.unknown))),
            self.why or other.why,
        )


class _Setting(BaseModel):
    kind: str
    host: str
    port: str
    is_known: bool


_SETTINGS = TypeAdapter(list[_Setting])


def declared_by_url(url: str) -> Declared:
    """Return the place in the address of a Postgres, which may name a folder of a Unix socket."""
    # psycopg takes a tenth of a second to import.
    import psycopg

    try:
        parts = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error as error:
        return Declared(why=f"the address in postgres can't be read: {error}".strip())
    host = str(parts.get("hostaddr") or parts.get("host") or os.environ.get("PGHOST", ""))
    port = str(parts.get("port") or os.environ.get("PGPORT", ""))
    return _declared([_Setting(kind="postgresql", host=host, port=port, is_known=True)])


def declared_by_django(
    command: Sequence[str], folder: Path, environ: Mapping[str, str]
) -> Declared:
    """Return the places in DATABASES and CACHES of a project; `why` has the reason if its manage.py
    does not print them.
    """
    try:
        printed = printed_by_project(
            *(_SCRIPT, "databases", [*command, "shell"], folder, environ),
            seconds=_TIMEOUT_SECONDS,
        )
        return _declared(_SETTINGS.validate_python(json.loads(printed)))
    except UsageError as error:
        first, *lines = str(error).splitlines()
        return Declared(why=" ".join((first, *(shorten(line.strip()) for line in lines[-1:]))))
    except (ValueError, ValidationError):
        return Declared(why=f"the project in {folder} printed other databases: {shorten(printed)}")


def _declared(settings: Sequence[_Setting]) -> Declared:
    databases, caches, unknown = list[Place](), list[Place](), list[str]()
    for setting in settings:
        if setting.kind in ("sqlite", "none"):
            continue
        places = list(_places(setting)) if setting.is_known else []
        (caches if setting.kind == "cache" else databases).extend(places)
        if not places and setting.kind != "cache":
            unknown.append(" ".join(filter(None, (setting.kind, setting.host))))
    why = "" if settings else "the project has no DATABASES"
    return Declared(_once(databases), _once(caches), tuple(unknown), why)


def _once(places: Sequence[Place]) -> tuple[Place, ...]:
    return tuple(dict.fromkeys(places))


def _places(setting: _Setting) -> Iterator[Place]:
    """Yield a place for each host of a database; libpq has several, separated by commas."""
    hosts, ports = setting.host.split(","), setting.port.split(",")
    for number, host in enumerate(hosts):
        text = ports[number] if len(ports) == len(hosts) else ports[0]
        port = int(text) if text.isdecimal() else _PORTS.get(setting.kind, 0)
        if setting.kind == "mysql" and host in ("", "localhost"):
            # Its client takes the Unix socket for that name.
            yield Place(_existing(_MYSQL_SOCKETS))
        elif setting.kind == "postgresql" and not host:
            yield Place(_existing([f"{each}/.s.PGSQL.{port}" for each in _SOCKET_FOLDERS]))
        elif host.startswith("/"):
            is_folder = setting.kind == "postgresql"
            yield Place(f"{host.rstrip('/')}/.s.PGSQL.{port}" if is_folder else host)
        elif host and port:
            yield from (Place(ip, port) for ip in first_address(host))


def _existing(paths: Sequence[str]) -> str:
    return next((path for path in paths if Path(path).is_socket()), paths[0])


def first_address(host: str) -> list[str]:
    """Return the host's first address; none if the name is unknown."""
    with suppress(OSError, UnicodeError):
        found = socket.getaddrinfo(host, None, proto=socket.IPPROTO_TCP)
        return [str(found[0][4][0])]
    return []
