"""Apply new settings to a running stack: with a reload where possible, else with a restart."""

import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
import psutil

from load_lab.console import step
from load_lab.errors import LabError
from load_lab.paths import State
from load_lab.settings import Settings, running_settings, save
from load_lab.stack import http
from load_lab.stack.native import backend, latency, postgres, render
from load_lab.stack.native.service_start import is_ready, start
from load_lab.stack.native.services import redis_service
from load_lab.stack.native.services.start_order import services
from load_lab.stack.native.supervision import Supervision, wait_for
from load_lab.stack.reported import query_nginx

# Time for requests in flight when a server restarts: it also waits for Nginx's idle connections,
# which end later.
_GRACE_SECONDS = 3

_BACKEND, _SECOND_SERVER, _NGINX, _POSTGRES = "backend", "backend-beside", "nginx", "postgres"
_WORKER = "backend-worker"

# Time for the last requests of Nginx's old workers, before the proxy that they use is removed.
_LAST_REQUESTS_SECONDS = 10


@dataclass(frozen=True)
class Change:
    """A change from the settings `before`, which the stack runs with, to `after`."""

    before: Settings
    after: Settings
    supervision: Supervision
    state: State

    def apply(self) -> None:
        """Apply the settings. Gunicorn and Nginx lose no request; any other server is stopped and
        started.
        """
        backend.load_new_data(self.before, self.after, self.state)
        if self._is_repair:
            self._start(_POSTGRES)
        restarted = self._save_settings()
        if restarted or not self._can_reload():
            self._restart_backend()
        else:
            backend.reload_workers(self.supervision, self.after, self._free_workers)
        self._restart_second_server()
        self._start(_WORKER)
        # Last: Nginx must not cache a response with the cache lifetime of an old worker.
        self._reload_nginx()
        self._stop_disabled(self.after)

    def is_applied(self) -> bool:
        """Return whether the running services have the settings `after`.

        A change that failed has also saved them: a server reads them when it starts.
        """
        states = self.supervision.states()
        names = (_POSTGRES, _BACKEND, _SECOND_SERVER, _WORKER, _NGINX)
        enabled = [s for s in services(self.after, self.state) if s.enabled and s.name in names]
        run = all(states[s.name] in ("running", "starting") and is_ready(s) for s in enabled)
        return run and self._nginx_is_current()

    @contextmanager
    def empty_caches(self) -> Iterator[None]:
        """Empty Redis, Nginx's cache, the caches of the backend's processes, and the queued
        requests.

        Nginx's list of cached files is in memory that survives a reload, and a socket's queue
        exists as long as its server. So both are stopped during the block, and always started
        again.
        """
        try:
            self.supervision.stop_quickly(_NGINX, _BACKEND, _SECOND_SERVER)
            self._save_settings()
            yield
            backend.load_new_data(self.before, self.after, self.state)
            redis_service.empty(self.after, self.state)
            for folder in self.state.run.glob("cache-*"):
                shutil.rmtree(folder)
        finally:
            settings = self._start_saved()
            self._stop_disabled(settings)
        wait_for(lambda: _is_ready(self.after), seconds=30, what="the stack with empty caches")

    def _save_settings(self) -> bool:
        """Save what is read at the next start or reload; return whether Postgres was restarted."""
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
    def _is_repair(self) -> bool:
        """Return whether `after` was already saved, by a change that failed."""
        return self.before == self.after

    def _can_reload(self) -> bool:
        """Return whether a reload is enough: gunicorn's master can also change the type of its
        workers.
        """
        kinds = (self.before.LAB_SERVER, self.after.LAB_SERVER)
        runs = bool(self.supervision.pid(_BACKEND))
        return runs and not self._is_repair and all(kind.startswith("gunicorn-") for kind in kinds)

    def _restart_backend(self) -> None:
        with step("Restarting the backend; it refuses for some seconds"):
            self.supervision.stop_quickly(_BACKEND, seconds=_GRACE_SECONDS)
        self._start(_BACKEND)

    def _free_workers(self) -> None:
        """Reload Nginx: gunicorn's ASGI worker waits for Nginx's idle connections."""
        if self.before.LAB_SERVER == "gunicorn-asgi":
            self.supervision.signal_service(_NGINX, signal.SIGHUP)

    def _restart_second_server(self) -> None:
        """Restart the second server if a setting that it reads changed: it reads them only at its
        start.
        """
        differs = self._is_repair or self.before.of_backend() != self.after.of_backend()
        if differs and self.after.LAB_SECOND_SERVER != "off":
            self.supervision.stop_quickly(_SECOND_SERVER, seconds=_GRACE_SECONDS)
            self._start(_SECOND_SERVER)

    def _reload_nginx(self) -> None:
        """Write Nginx's files and reload it. Written earlier, `_free_workers` could load them too
        soon.
        """
        render.write_nginx(self.after, self.state)
        if self._is_repair:
            self._start(_NGINX)
        with step("Reloading nginx"):
            pid = self.supervision.pid(_NGINX)
            old = psutil.Process(pid).children() if pid else []
            self.supervision.signal_service(_NGINX, signal.SIGHUP)
            # The master stops the old workers some 100 ms after the new ones started; until then,
            # both accept requests.
            wait_for(
                lambda: not any(map(_accepts, old)) and self._nginx_is_current(),
                seconds=20,
                what="the new settings of Nginx",
            )
            if latency.differs(self.before, self.after):
                # The old workers send the last requests over the old path. WebSockets would keep
                # them running.
                psutil.wait_procs(old, timeout=_LAST_REQUESTS_SECONDS)

    def _nginx_is_current(self) -> bool:
        try:
            settings = query_nginx(self.after)
        except LabError:
            return False
        return settings.items() <= self.after.as_env().items()

    def _stop_disabled(self, settings: Settings) -> None:
        latency.end(settings, self.state)
        for service in services(settings, self.state):
            if not service.enabled:
                self.supervision.stop_service(service.name)
        if settings.LAB_SECOND_SERVER == "off":
            self._delete_second_server_gauges()

    def _delete_second_server_gauges(self) -> None:
        """Delete the gauges of the second server: no later worker does
        (backend/observability/metrics.py).
        """
        for file in (self.state.run / "metrics/beside").glob("gauge_live*"):
            file.unlink(missing_ok=True)

    def _start(self, *names: str) -> None:
        self._start_with(self.after, *names)

    def _start_saved(self) -> Settings:
        """Start the servers with the saved settings: `before`, when something failed before the
        save.
        """
        settings = running_settings(self.state) or self.before
        render.write_nginx(settings, self.state)
        self._start_with(settings, _BACKEND, _SECOND_SERVER, _WORKER, _NGINX)
        return settings

    def _start_with(self, settings: Settings, *names: str) -> None:
        known = {service.name: service for service in services(settings, self.state)}
        start([known[name] for name in names], self.supervision, settings, self.state)


def _accepts(worker: psutil.Process) -> bool:
    try:
        return "is shutting down" not in " ".join(worker.cmdline())
    except psutil.NoSuchProcess:
        return False


def _is_ready(settings: Settings) -> bool:
    try:
        return http.get(f"{settings.backend_url}/readyz", timeout=5).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False
