"""A target of the user's own, as its file declares it."""

import ipaddress
import json
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import psutil
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from load_lab.errors import LabError, UsageError
from load_lab.machine import observation
from load_lab.machine.logs import FileText, NewText
from load_lab.machine.observation import POSTGRES
from load_lab.machine.observer import Watched
from load_lab.machine.waits import Dependencies
from load_lab.stack import http
from load_lab.stack.native.supervision import last_lines
from load_lab.targets.credentials import Credentials, credentials, fill_variables
from load_lab.targets.databases import (
    COUNT_CONNECTIONS,
    Declared,
    declared_by_django,
    declared_by_url,
)
from load_lab.targets.file import TargetFile, read_target, target_path
from load_lab.targets.mix import read_mix
from load_lab.targets.observation import (
    SERVER,
    Sightings,
    count_database_connections,
    dependencies_of,
    observe,
    server_processes,
)
from load_lab.targets.statements import NOT_LOADED, Statements, read_statements
from load_lab.targets.target import no_check

if TYPE_CHECKING:
    import psycopg

_POLL_SECONDS = 0.2
# Of the tenth of a second between two looks.
_LOOK_SECONDS = 0.02
# Of libpq.
_POSTGRES_PORT = 5432
# What answers in front of an app: its own threads and connections say nothing of it.
_PROXIES = {"nginx", "haproxy", "caddy", "traefik", "envoy"}
# Where an app answers that is ready, if its file does not say it.
_READY_PATHS = (
    *("/", "/health/", "/healthz", "/ready/", "/readyz", "/ping/", "/status/", "/api/"),
    *("/login/", "/accounts/login/", "/admin/login/"),
)
_HINTS = {
    401: "It needs a header: --header of `lab target add`, or [headers] or [auth] in the file.",
    403: "The header's token may not read it, or ready has the wrong path.",
    404: "Name a path that answers 200: --ready of `lab target add`, or ready in the file.",
}


@dataclass(frozen=True)
class Front:
    """The Nginx in front of a target."""

    url: str
    pid: int


class _NotReadyError(Exception):
    """The response is not a 200."""


@dataclass(frozen=True)
class DeclaredTarget:
    """See target.py. `name` is what the user typed; `check` raises LabError if a process
    that the lab started for it has ended; `commit` is the one whose code runs, None for the
    folder as it is; `log` has the output of the app that the lab started; `front` is the cache that
    k6 asks instead of the target itself, `uncached` the operations that it does not store although
    [cache] names them, and why.
    """

    name: str
    file: TargetFile
    path: Path
    check: Callable[[], None] = no_check
    commit: str | None = None
    log: Path | None = None
    front: Front | None = None
    uncached: Mapping[str, str] = field(default_factory=dict)
    # `lab target add` asks the target before it writes the file.
    is_written: bool = True
    # Of all variants, so that a service counts in each of them.
    sightings: Sightings = field(default_factory=Sightings, compare=False, repr=False)

    @property
    def url(self) -> str:
        return self.file.url

    @property
    def description(self) -> str:
        return self.file.title or self.path.stem

    @property
    def pids(self) -> Mapping[str, int]:
        # A variant may have another database.
        key = tuple(sorted(self.file.start.env.items())) if self.file.start else ()
        if key not in self.sightings.asked:
            self.sightings.asked.add(key)
            self.sightings.declare(self._declared())
        found = observe(self.url, self.sightings)
        return found | ({"cache": self.front.pid} if self.front else {})

    def _declared(self) -> Declared:
        """Return where its file or its Django settings say that its database is."""
        if self._postgres:
            return declared_by_url(self._postgres)
        if not self.file.manage:
            return Declared(why="the file has neither postgres nor manage")
        # What reads the database's address from the environment reads it as the target does.
        env = dict(os.environ)
        for name, value in (self.file.start.env if self.file.start else {}).items():
            with suppress(UsageError):
                env[name] = fill_variables(str(value), name)
        return declared_by_django(self.file.manage, self.folder, env)

    def look_for_database(self, seconds: float, pids: Sequence[int] = ()) -> None:
        """Look for its database while it answers requests; `pids` are its server's processes."""
        if not self.sightings.has_database:
            pids = pids or server_processes(self.pids.get(SERVER))
            self.sightings.look_for_database(self.url, pids, seconds)

    def unseen_services(self) -> list[str]:
        """Return which of its services are not observed, or not for certain, and what to do."""
        return self.sightings.unseen(str(self.path))

    @property
    def is_observed(self) -> bool:
        return bool(self.pids)

    @property
    def folder(self) -> Path:
        """Where the commands of the target file run: beside it."""
        return self.path.resolve().parent

    @property
    def start_folder(self) -> Path:
        """Where the command of [start] runs.

        Raises:
            UsageError: it does not exist.
        """
        folder = self.folder / (self.file.start.folder if self.file.start else ".")
        if not folder.is_dir():
            raise UsageError(f"The folder of [start] in {self.path} does not exist: {folder}")
        return folder

    @property
    def mix_path(self) -> Path:
        return self.folder / (self.file.mix or f"{self.path.stem}.mix.json")

    @cached_property
    def credentials(self) -> Credentials:
        return credentials(self.file, self.folder)

    def require_ready(self) -> None:
        """Wait until `ready` answers 200; without a value, until one of the usual paths answers 200
        or a redirect.

        Raises:
            LabError: it does not within `ready_seconds`.
        """
        retry = Retrying(
            retry=retry_if_exception_type((httpx.TransportError, _NotReadyError)),
            wait=wait_fixed(_POLL_SECONDS),
            stop=stop_after_delay(self.file.ready_seconds),
            reraise=True,
        )
        try:
            retry(self._ask)
        except (httpx.TransportError, _NotReadyError) as error:
            remedy = (
                f"change url, ready or ready_seconds in {self.path}"
                if self.is_written
                else "name another URL or another --ready. Nothing was written"
            )
            expected = "200" if self.file.ready else "200 or redirect"
            raise LabError(
                f"{self.url}{self.file.ready or '/'} gave no {expected} within "
                f"{self.file.ready_seconds:g} s: {error}. Start the target, or {remedy}.{self._end}"
            ) from None

    @property
    def _end(self) -> str:
        """Return the end of its log, if the lab started it: workers may fail, and their master
        start others.
        """
        return f" Its log, {self.log}, ends:\n{last_lines(self.log)}" if self.log else ""

    def require_alive(self) -> None:
        self.check()
        try:
            # Connect only: an overloaded target would answer a request after minutes.
            socket.create_connection(http.address(self.url), timeout=5).close()
        except ConnectionRefusedError:
            raise LabError(
                f"The target {self.name} went down during the test: {self.url} refuses "
                "connections. See its log."
            ) from None
        except OSError:
            return

    def watched(self) -> Watched:
        pids = self.pids
        postgres = self._postgres
        logs: dict[str, NewText] = {observation.SERVER: FileText(self.log)} if self.log else {}
        if SERVER not in pids or _is_proxy(pids[SERVER]):
            # On another host, or another user's; or what is seen is not the app.
            return Watched(
                connect_postgres=lambda: _connect(postgres),
                database=_database_of(postgres),
                logs=logs,
            )
        return Watched(
            server_pids=(pids[SERVER],),
            services=self._other_services(pids),
            server_ports=(http.address(self.url)[1],),
            find_dependencies=lambda: self._dependencies(pids[SERVER]),
            connect_postgres=lambda: _connect(postgres),
            # A container's connections to its database are in its own network.
            network_pids=(os.getpid(), pids[SERVER]),
            database=_database_of(postgres),
            logs=logs,
            look=partial(self.look_for_database, _LOOK_SECONDS),
            find_unseen=self.unseen_services,
        )

    def read_statements(self, *, texts: bool = False) -> Statements | None:
        """Return the statements that its Postgres counts; None if it is not named, or does not."""
        # psycopg takes a tenth of a second to import.
        import psycopg

        with suppress(psycopg.Error):
            connection = _connect(self._postgres)
            if connection:
                with connection:
                    return read_statements(connection, texts=texts)
        return None

    def why_no_statements(self) -> str:
        """Return why `read_statements` returns none."""
        import psycopg

        if self._postgres is None:
            return f"postgres is not named in {self.path}"
        try:
            psycopg.connect(self._postgres, connect_timeout=2).close()
        except psycopg.Error as error:
            return f"Postgres can't be reached: {str(error).strip().splitlines()[0]}"
        return NOT_LOADED

    def count_connections(self, server_pid: int) -> int | None:
        """Return the connections to its database: as its Postgres counts them, else those of its
        server; None if the database is not known.

        Raises:
            LabError: Postgres can't be asked.
        """
        # psycopg takes a tenth of a second to import.
        import psycopg

        try:
            connection = _connect(self._postgres)
            if connection is None:
                return count_database_connections(server_pid, self.sightings)
            with connection:
                (count,) = connection.execute(COUNT_CONNECTIONS).fetchone() or (None,)
                return count
        except psycopg.Error as error:
            raise LabError(f"The connections of {self.name} can't be counted: {error}") from None

    @property
    def _postgres(self) -> str | None:
        """Return the address of the app's Postgres, with the variables' values.

        Raises:
            UsageError: one is not set.
        """
        if self.file.postgres is None:
            return None
        return fill_variables(self.file.postgres, "postgres in the target file", quoted=True)

    def _dependencies(self, pid: int) -> Dependencies:
        """Return what the server is connected to; its Postgres by that name, whatever runs it."""
        found = dependencies_of(pid, self.sightings)
        return {self._role(name, found): places for name, places in found.items()}

    def _other_services(self, pids: Mapping[str, int]) -> dict[str, int]:
        """Return the services without the server, by the names of its dependencies."""
        found = dependencies_of(pids[SERVER], self.sightings)
        return {
            self._role(name.removesuffix("-server"), found): pid
            for name, pid in pids.items()
            if name != SERVER
        }

    def _role(self, name: str, found: Dependencies) -> str:
        """Return the name of a dependency: Postgres, if it is at the port of the file's."""
        if self._postgres is None:
            return name
        port = urlsplit(self._postgres).port or _POSTGRES_PORT
        return POSTGRES if port in (at for _, at in found.get(name, ())) else name

    def k6_env(self) -> dict[str, str]:
        # A missing or foreign mix is reported before k6 starts.
        read_mix(self.mix_path)
        known = self.credentials
        expiry = {} if known.expires is None else {"TARGET_EXPIRES": str(known.expires)}
        return {
            "SCENARIO": "replay",
            "MIX": str(self.mix_path),
            "TARGET_HEADERS": json.dumps(dict(known.headers)),
            **expiry,
            **({"BASE_URL": self.front.url} if self.front else {}),
        }

    def _first_credentials(self) -> Credentials:
        """Return the credentials. A command that logs in fails while the lab starts the target.

        Raises:
            _NotReadyError: it failed.
        """
        try:
            return self.credentials
        except UsageError:
            raise
        except LabError as error:
            if self.file.start is None:
                raise
            raise _NotReadyError(str(error)) from None

    def _ask(self) -> None:
        self.check()
        statuses: dict[str, int] = {}
        for path in self._ready_paths():
            statuses[path] = status = self._status(path)
            if status == httpx.codes.OK or (self.file.ready is None and 300 <= status < 400):
                return
        # An app that starts may answer 503 at some paths, and 404 at the others.
        path, status = max(statuses.items(), key=lambda each: each[1] >= 500)
        if status in _HINTS:
            file = f"The file: {self.path}" if self.is_written else "Nothing was written."
            others = list(statuses)[1:]
            rest = f"Neither did {', '.join(others)} answer 200. " if others else ""
            raise LabError(f"{self.url}{path} answers {status}. {_HINTS[status]} {rest}{file}")
        raise _NotReadyError(f"it answers {status}")

    def _ready_paths(self) -> tuple[str, ...]:
        if self.file.ready:
            return (self.file.ready,)
        openapi = self.file.openapi or ""
        return (*_READY_PATHS, *((openapi,) if openapi.startswith("/") else ()))

    def _status(self, path: str) -> int:
        return http.get(
            self.url + path,
            timeout=self.file.ready_seconds,
            headers=self._first_credentials().headers,
        ).status_code


def _connect(address: str | None) -> "psycopg.Connection[Any] | None":
    if address is None:
        return None
    # psycopg takes a tenth of a second to import.
    import psycopg

    return psycopg.connect(address, connect_timeout=2)


def _database_of(address: str | None) -> str:
    return urlsplit(address or "").path.lstrip("/")


def _is_proxy(pid: int) -> bool:
    with suppress(psutil.Error):
        return psutil.Process(pid).name() in _PROXIES
    return False


def find_target(name: str) -> DeclaredTarget:
    """Return the declared target of this name or path.

    Raises:
        UsageError: there is none, or its file is invalid.
    """
    return DeclaredTarget(name, read_target(name), target_path(name))


# The highest rate on a host that is not the user's own network.
PUBLIC_RATE = 50


def is_public(url: str) -> bool:
    """Return whether the address is neither loopback nor private; an unknown name is public."""
    host = urlsplit(url).hostname or ""
    try:
        found = socket.getaddrinfo(host, None, proto=socket.IPPROTO_TCP)
    except OSError:
        return True
    addresses = [ipaddress.ip_address(str(address[0]).partition("%")[0]) for *_, address in found]
    return not all(address.is_private for address in addresses)


def find_allowed(name: str, allowed_host: str | None) -> DeclaredTarget:
    """Return the declared target of this name, if it may be loaded.

    Raises:
        UsageError: there is none, or its host is public and not `allowed_host`.
    """
    target = find_target(name)
    require_allowed(target.url, allowed_host)
    return target


def require_allowed(url: str, allowed_host: str | None) -> None:
    """Check that a server may be loaded.

    Raises:
        UsageError: its host is public and not `allowed_host`.
    """
    host = urlsplit(url).hostname
    if is_public(url) and allowed_host != host:
        raise UsageError(
            f"{host} is not on this machine or a private network. Load only what is yours. If it "
            f"is: --yes-load {host}. At most {PUBLIC_RATE} requests/s are then sent."
        )
