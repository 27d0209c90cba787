"""The lab's own hotel-booking API, behind Nginx."""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import httpx

from load_lab.errors import LabError
from load_lab.machine.observation import POSTGRES, SERVER
from load_lab.machine.observer import Watched
from load_lab.machine.waits import Dependencies
from load_lab.settings import LOOPBACK, Settings
from load_lab.stack import http
from load_lab.stack.engine import Engine, require_reference_app, settings_of
from load_lab.stack.measuring_services import side_of
from load_lab.stack.reported import query_backend
from load_lab.targets.target import Target

# What k6 addresses: Nginx; the server behind it, as in sources without a proxy; or Nginx's /async/,
# which LAB_SECOND_SERVER serves if there is one.
Entry = Literal["nginx", "server", "async"]

# Routes whose response bodies the backend counts as it builds them.
ROUTES = ("hotel_list", "hotel_detail")

# On a slow machine the backend may still work off the requests of the warm-up, for minutes.
_READY_SECONDS = 300


@dataclass(frozen=True)
class ReferenceApp:
    """The hotel API of the running stack. `address`: Nginx's, as other machines reach it."""

    engine: Engine
    entry: Entry = "nginx"
    address: str = ""
    name: ClassVar[str] = "hotel"
    is_observed: ClassVar[bool] = True
    # The engine knows its processes.
    pids: ClassVar[dict[str, int]] = {}
    # Its cache has no list of operations.
    uncached: ClassVar[dict[str, str]] = {}

    @property
    def url(self) -> str:
        settings = settings_of(self.engine)
        if self.address:
            return self.address
        if self.entry == "server":
            return settings.server_url
        return settings.target_url + ("/async" if self.entry == "async" else "")

    @property
    def description(self) -> str:
        settings = settings_of(self.engine)
        return (
            f"{settings.LAB_SERVER} × {settings.LAB_WORKERS}, detail {settings.LAB_DETAIL}, "
            f"booking {settings.LAB_BOOKING}, Redis cache {settings.LAB_REDIS_CACHE}, "
            f"Nginx cache {settings.LAB_NGINX_CACHE}"
        )

    def require_ready(self) -> None:
        settings = settings_of(self.engine)
        require_reference_app(settings)
        try:
            response = http.get(f"{settings.backend_url}/readyz", timeout=_READY_SECONDS)
        except httpx.HTTPError as error:
            raise LabError(
                f"The backend does not answer at {settings.backend_url} ({error}). "
                "See `lab status` and `lab logs backend`."
            ) from None
        if response.status_code != httpx.codes.OK:
            raise LabError(f"The stack is not ready: {response.text}")

    def require_alive(self) -> None:
        port = settings_of(self.engine).LAB_BACKEND_PORT
        try:
            # Connect only: an overloaded target would answer a request after minutes.
            socket.create_connection((LOOPBACK, port), timeout=5).close()
        except ConnectionRefusedError:
            services = self.engine.services()
            down = ", ".join(s.name for s in services if s.state in ("failed", "stopped"))
            raise LabError(
                f"The target went down during the test (not running: {down or 'the backend'}). "
                "See `lab status` and `lab logs backend`."
            ) from None
        except OSError:
            return

    def watched(self) -> Watched:
        settings, pids = settings_of(self.engine), self.engine.pids()
        is_second = self.entry == "async" and settings.LAB_SECOND_SERVER != "off"
        name = "backend-beside" if is_second else "backend"
        common = Watched(
            server_pids=(pids[name],) if name in pids else (),
            services=_other_services(name, pids),
            connect_postgres=self.engine.connect_postgres,
            logs={
                title: self.engine.new_log(service)
                for title, service in ((SERVER, name), (POSTGRES, "postgres"), ("nginx", "nginx"))
            },
        )
        if not self.engine.has_processes:
            return self._watched_in_containers(common, pids)
        port = settings.LAB_SECOND_SERVER_PORT if is_second else settings.LAB_BACKEND_PORT
        return replace(
            common, server_ports=(port,), find_dependencies=lambda: _dependencies(settings)
        )

    def _watched_in_containers(self, common: Watched, pids: Mapping[str, int]) -> Watched:
        """Return it with the ports and networks of docker-compose.yml."""
        delayed = settings_of(self.engine).is_delayed
        if delayed and self.entry != "async":
            client = pids.get("toxiproxy")
        else:
            client = os.getpid() if self.entry == "server" else pids.get("nginx")
        dependencies = {POSTGRES: (("", 8475 if delayed else 5432),), "redis": (("", 6379),)}
        return replace(
            common,
            server_ports=(8000,) if client and common.server_pids else (),
            find_dependencies=lambda: dependencies,
            network_pids=(client, *common.server_pids) if client else (),
        )

    def k6_env(self) -> dict[str, str]:
        settings = settings_of(self.engine)
        return {
            "SETTINGS_URL": f"{settings.backend_url}/lab/settings",
            "LAB_TOKEN": self.engine.token(),
            # k6 stops unless the backend reports the same values.
            "EXPECT_SETTINGS": ",".join("=".join(pair) for pair in settings.of_backend().items()),
        }


def at_entry(engine: Engine, entry: Entry) -> Target:
    """Return the hotel API as k6 addresses it."""
    return ReferenceApp(engine, entry)


def answers_at(url: str, settings: Settings) -> bool:
    """Return whether the hotel API, and no other target, answers at an address."""
    own = (settings.target_url, settings.server_url, settings.backend_url)
    return settings.LAB_REFERENCE_APP == "on" and url.startswith(own)


def entry_of(url: str, settings: Settings) -> Entry | None:
    """Return what a load of a stack with these settings addressed; None for another address."""
    if url == settings.server_url:
        return "server"
    if not url.startswith(settings.target_url):
        return None
    return "async" if url.endswith("/async") else "nginx"


def reported_facts(engine: Engine, settings: Settings) -> dict[str, Any]:
    """Return the versions of the backend's programs, and the size of the data.

    Raises:
        LabError: it runs with DEBUG on.
    """
    backend = query_backend(settings, engine.token())
    if backend["debug"]:
        raise LabError("The backend runs with DEBUG on, so results would be void. Unset DEBUG.")
    data = {n: v for n, v in settings.as_env().items() if n.startswith("LAB_DATA_")}
    return {"versions": backend["versions"], "data": data}


def _other_services(server: str, pids: Mapping[str, int]) -> dict[str, int]:
    """Return the target's services that run, without the server."""
    return {name: pid for name, pid in pids.items() if side_of(name) == "target" and name != server}


def _dependencies(settings: Settings) -> Dependencies:
    """Return the ports of Postgres (toxiproxy's while there is a delay) and Redis."""
    delayed = settings.delayed_postgres_port
    postgres = delayed if settings.is_delayed else settings.LAB_POSTGRES_PORT
    return {POSTGRES: (("", postgres),), "redis": (("", settings.LAB_REDIS_PORT),)}
