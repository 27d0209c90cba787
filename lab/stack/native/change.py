"""New settings in a running stack: by a reload where that works, else by a restart."""

import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
import psutil

from lab import http
from lab.console import step
from lab.errors import LabError
from lab.paths import State
from lab.settings import Settings, running_settings, save
from lab.stack.inspect import ask_nginx
from lab.stack.native import backend, latency, postgres, render
from lab.stack.native.services import redis_service, services
from lab.stack.native.starting import answers, start
from lab.stack.native.supervision import Supervision, wait_for

# Time for requests in flight when a server is restarted: it waits for Nginx's idle connections too,
# which end later.
_GRACE_SECONDS = 3

_BACKEND, _BESIDE, _NGINX, _POSTGRES = "backend", "backend-beside", "nginx", "postgres"
_WORKER = "backend-worker"

# As long as Nginx's old workers may take for what they have, when the way that they take is to go.
_LAST_REQUESTS_SECONDS = 10
# Settings that no field of the backend's is for (backend/config/env.py).
_NOT_BACKENDS = {"LAB_NGINX_POST_RATE", "LAB_PROXY_TIMEOUT", "LAB_CLIENT_TIMEOUT"}


@dataclass(frozen=True)
class Change:
    """From the settings `before`, which the stack runs with, to those `after`."""

    before: Settings
    after: Settings
    supervision: Supervision
    state: State

    def apply(self) -> None:
        """Gunicorn's kinds and Nginx lose no request; another server is stopped and started."""
        backend.load_what_is_new(self.before, self.after, self.state)
        if self._repairs:
            self._start(_POSTGRES)
        restarted = self._adopt()
        if restarted or not self._can_reload():
            self._restart_backend()
        else:
            backend.reload_workers(self.supervision, self.after, self._free_workers)
        self._renew_beside()
        self._start(_WORKER)
        # Last: Nginx must not keep a page for as long as an old worker says.
        self._reload_nginx()
        self._stop_unwanted(self.after)

    def is_done(self) -> bool:
        """Whether what runs has the settings `after`.

        A switch that failed has saved them all the same: a server reads them when it starts.
        """
        states = self.supervision.states()
        changing = (_POSTGRES, _BACKEND, _BESIDE, _WORKER, _NGINX)
        wanted = [s for s in services(self.after, self.state) if s.wanted and s.name in changing]
        run = all(states[s.name] in ("running", "starting") and answers(s) for s in wanted)
        return run and self._nginx_has_it()

    @contextmanager
    def emptied(self) -> Iterator[None]:
        """Redis, Nginx's pages, what the backend's processes hold, and what waits for them.

        Nginx knows its files by memory that outlives a reload, and a socket keeps its queue as long
        as the server lives: they are stopped meanwhile, and started again whatever happens.
        """
        try:
            self.supervision.stop_quickly(_NGINX, _BACKEND, _BESIDE)
            self._adopt()
            yield
            backend.load_what_is_new(self.before, self.after, self.state)
            redis_service.empty(self.after, self.state)
            for folder in self.state.run.glob("cache-*"):
                shutil.rmtree(folder)
        finally:
            saved = self._start_what_is_saved()
            self._stop_unwanted(saved)
        wait_for(lambda: _is_ready(self.after), seconds=30, what="the stack with empty caches")

    def _adopt(self) -> bool:
        """What is read at the next start or reload; returns whether Postgres was restarted."""
        if latency.differs(self.before, self.after):
            latency.begin(self.after, self.state)
        save(self.after, self.state)
        if self.before.LAB_DB_MAX_CONNECTIONS == self.after.LAB_DB_MAX_CONNECTIONS:
            return False
        postgres.configure(self.after, self.state)
        self.supervision.stop_service(_POSTGRES)
        self._start(_POSTGRES)
        return True

    @property
    def _repairs(self) -> bool:
        """Whether the settings are those that were saved, by a switch that failed."""
        return self.before == self.after

    def _can_reload(self) -> bool:
        """Whether one master serves both: gunicorn's, which takes another kind of worker too."""
        kinds = (self.before.LAB_SERVER, self.after.LAB_SERVER)
        runs = bool(self.supervision.pid(_BACKEND))
        return runs and not self._repairs and all(kind.startswith("gunicorn-") for kind in kinds)

    def _restart_backend(self) -> None:
        with step("Restarting the backend; it refuses for some seconds"):
            self.supervision.stop_quickly(_BACKEND, seconds=_GRACE_SECONDS)
        self._start(_BACKEND)

    def _free_workers(self) -> None:
        """Gunicorn's own ASGI worker waits for the connections that Nginx keeps for later."""
        if self.before.LAB_SERVER == "gunicorn-asgi":
            self.supervision.signal_service(_NGINX, signal.SIGHUP)

    def _renew_beside(self) -> None:
        """It reads its settings at its start alone; those of Nginx are nothing to it."""
        differs = self._repairs or _as_read(self.before) != _as_read(self.after)
        if differs and self.after.LAB_SECOND_SERVER != "off":
            self.supervision.stop_quickly(_BESIDE, seconds=_GRACE_SECONDS)
            self._start(_BESIDE)

    def _reload_nginx(self) -> None:
        """Its files are written here: it might have been told to read them before."""
        render.write_nginx(self.after, self.state)
        if self._repairs:
            self._start(_NGINX)
        with step("Reloading nginx"):
            pid = self.supervision.pid(_NGINX)
            old = psutil.Process(pid).children() if pid else []
            self.supervision.signal_service(_NGINX, signal.SIGHUP)
            wait_for(self._nginx_has_it, seconds=20, what="the new settings of Nginx")
            if latency.differs(self.before, self.after):
                # Theirs are the last requests on the old way. A WebSocket would keep them.
                psutil.wait_procs(old, timeout=_LAST_REQUESTS_SECONDS)

    def _nginx_has_it(self) -> bool:
        try:
            said = ask_nginx(self.after)
        except LabError:
            return False
        return said.items() <= self.after.as_env().items()

    def _stop_unwanted(self, settings: Settings) -> None:
        latency.end(settings, self.state)
        for service in services(settings, self.state):
            if not service.wanted:
                self.supervision.stop_service(service.name)
        if settings.LAB_SECOND_SERVER == "off":
            self._forget_beside()

    def _forget_beside(self) -> None:
        """No later worker takes its gauges out (backend/observability/metrics.py)."""
        for file in (self.state.run / "metrics/beside").glob("gauge_live*"):
            file.unlink(missing_ok=True)

    def _start(self, *names: str) -> None:
        self._start_with(self.after, *names)

    def _start_what_is_saved(self) -> Settings:
        """Servers read the file: it has `before` still, when something failed before its turn."""
        saved = running_settings(self.state) or self.before
        render.write_nginx(saved, self.state)
        self._start_with(saved, _BACKEND, _BESIDE, _WORKER, _NGINX)
        return saved

    def _start_with(self, settings: Settings, *names: str) -> None:
        known = {service.name: service for service in services(settings, self.state)}
        start([known[name] for name in names], self.supervision, settings, self.state)


def _as_read(settings: Settings) -> dict[str, str]:
    """What the backend reads: all but what is for Nginx and the load alone."""
    return {name: value for name, value in settings.as_env().items() if name not in _NOT_BACKENDS}


def _is_ready(settings: Settings) -> bool:
    try:
        return http.get(f"{settings.backend_url}/readyz", timeout=5).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False
