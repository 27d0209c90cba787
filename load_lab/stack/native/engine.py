"""The native engine: the stack as plain processes, all state below one directory."""

import os
import subprocess
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab_settings.declaration import is_fixed

from load_lab.console import note, step
from load_lab.errors import LabError, UsageError
from load_lab.interrupts import uninterrupted
from load_lab.machine.cpus import choose_cpus, pinned
from load_lab.machine.logs import FileText, NewText
from load_lab.paths import State, lab_file, make_open
from load_lab.settings import Settings, running_settings, save
from load_lab.stack.engine import NO_REST_API, K6Command, ServiceStatus, require_reference_app
from load_lab.stack.measuring_services import measured_group
from load_lab.stack.native import (
    backend,
    die_with_parent,
    latency,
    postgres,
    preflight,
    render,
    scheduling,
    supervision,
)
from load_lab.stack.native.change import Change
from load_lab.stack.native.program_paths import numbers, program_versions, require, version_of
from load_lab.stack.native.service_start import start
from load_lab.stack.native.services import grafana, redis_service
from load_lab.stack.native.services.service import Service
from load_lab.stack.native.services.start_order import backend_env, services, start_groups
from load_lab.stack.native.supervision import (
    Supervision,
    mark,
    remove_socket,
    stop_leftovers,
    stop_loads,
    wait_for,
)
from load_lab.stack.reference import DATABASE, HAS_DATA
from load_lab.stack.reported import wait_for_api
from load_lab.stack.superuser import connect

if TYPE_CHECKING:
    import psycopg

# About half a million requests.
_LOG_BYTES = 200 * 1024**2
_DISABLED = "the settings want none"
# Until k6 2.1, this variable had the meaning of K6_FEATURES in k6/push.env.
_OLDER_HISTOGRAMS = {"K6_PROMETHEUS_RW_TREND_AS_NATIVE_HISTOGRAM": "true"}


@cache
def _histograms_env(k6: Path) -> dict[str, str]:
    is_older = numbers(version_of([str(k6), "version"])) < (2, 1)
    return _OLDER_HISTOGRAMS if is_older else {}


class NativeEngine:
    """See `load_lab.stack.engine.Engine`."""

    name = "native"
    has_processes = True

    def __init__(self, state: State) -> None:
        self._state = state
        self._supervision = Supervision(state)

    def up(self, settings: Settings) -> None:
        settings = pinned(settings)
        if self._supervision.alive:
            self._resume(settings)
            return
        self._clear_leftovers()
        self._prepare(settings)
        try:
            self._start(settings)
        except BaseException:
            # A partly started stack would occupy its ports and not respond.
            with uninterrupted("Stopping what was started first; a moment."):
                self.down()
            raise

    def down(self) -> None:
        if self._supervision.alive:
            with step("Stopping the stack"):
                self._supervision.stop()
        stop_leftovers(self._state)
        supervision.remove_shared_memory(self._state)
        remove_socket(self._state)
        self._state.settings.unlink(missing_ok=True)

    def apply(self, settings: Settings) -> None:
        before, settings = self._reference_settings(), pinned(settings)
        differences = _differences(before, settings)
        _reject_fixed(differences)
        change = Change(before, settings, self._supervision, self._state)
        if differences or not change.is_applied():
            change.apply()

    def exec(self, service: str, argv: list[str]) -> subprocess.CompletedProcess[str]:
        settings = self._running_settings()
        env = {**os.environ, **backend_env(settings, self._state)}
        folder = self._state.backend if service == "backend" else lab_file()
        return subprocess.run(
            [*die_with_parent.argv_prefix(), *argv],
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )

    def services(self) -> list[ServiceStatus]:
        settings = self.settings()
        if settings is None:
            return []
        states = self._supervision.states() if self._supervision.alive else {}
        statuses = [
            ServiceStatus(
                s.name, states.get(s.name, "stopped"), s.url, group=measured_group(s.name)
            )
            if s.enabled
            else ServiceStatus(s.name, "missing", None, _DISABLED)
            for s in services(settings, self._state)
        ]
        return statuses + _absent_services()

    def settings(self) -> Settings | None:
        return running_settings(self._state)

    def token(self) -> str:
        return self._state.secret("lab_token")

    def empty_caches(self, settings: Settings | None = None) -> AbstractContextManager[None]:
        before = self._reference_settings()
        after = pinned(settings or before)
        _reject_fixed(_differences(before, after))
        return Change(before, after, self._supervision, self._state).empty_caches()

    def sql(self, database: str, *statements: str) -> list[str]:
        return postgres.run(database, statements, self._running_settings(), self._state)

    def connect_postgres(self) -> "psycopg.Connection[Any] | None":
        settings = self._running_settings()
        if settings.LAB_REFERENCE_APP == "off":
            return None
        return connect(settings, self._state.secret(postgres.PASSWORD))

    def new_log(self, service: str) -> NewText:
        name = "nginx-error" if service == "nginx" else service
        return FileText(self._state.logs / f"{name}.log")

    def pids(self) -> dict[str, int]:
        return self._supervision.pids() if self._supervision.alive else {}

    def versions(self) -> dict[str, str]:
        return program_versions()

    def limits(self) -> dict[str, str]:
        return render.limits(self._running_settings())

    def logs(self, service: str, follow: bool) -> list[str]:
        known = sorted(log.stem for log in self._state.logs.glob("*.log"))
        if service not in known:
            names = ", ".join(known) or "none yet; `lab up` starts the stack"
            raise UsageError(f"There is no log of '{service}'. Known: {names}.")
        flags = ["-n", "200", *(["-f"] if follow else [])]
        return ["tail", *flags, str(self._state.logs / f"{service}.log")]

    def push_url(self, settings: Settings) -> str:
        return settings.push_url

    def k6(self, settings: Settings, env: dict[str, str]) -> K6Command:
        self._truncate_logs()
        k6 = require("k6")
        pinned = ["taskset", "-c", choose_cpus(settings).load, str(k6), *NO_REST_API]
        argv = [*die_with_parent.argv_prefix(), *scheduling.ARGV_PREFIX, *pinned]
        marks = mark(self._state, load=True)
        return K6Command(
            argv, lab_file("k6"), {**os.environ, **_histograms_env(k6), **marks, **env}
        )

    def stop_load(self) -> int:
        return stop_loads(self._state)

    def _truncate_logs(self) -> None:
        """Truncate Nginx's logs between tests: Nginx appends, so only old lines are lost."""
        for name in ("nginx-access.log", "nginx-error.log"):
            log = self._state.logs / name
            if log.exists() and log.stat().st_size > _LOG_BYTES:
                os.truncate(log, 0)

    def _resume(self, settings: Settings) -> None:
        """Start the stopped services of a running stack, and make the settings active.

        A killed `lab` may have left the start unfinished, or the database closed.
        """
        current = self._running_settings()
        if count := self._supervision.stop_orphans():
            note(f"Stopped {count} processes that a killed process had left running.")
        is_complete = self._supervision.state("backend") == "running"
        for group in start_groups(services(current, self._state)):
            self._start_group(group, current)
            is_database = group[0].name == "postgres" and group[0].enabled
            if is_database and not (is_complete and self._has_data(current)):
                backend.load(current, self._state)
        if current.LAB_REFERENCE_APP == "on":
            self.apply(settings)
        else:
            _reject_fixed(_differences(current, settings))

    def _has_data(self, settings: Settings) -> bool:
        try:
            return bool(postgres.run(DATABASE, (HAS_DATA,), settings, self._state))
        except LabError:
            return False

    def _clear_leftovers(self) -> None:
        count = stop_leftovers(self._state)
        if count:
            note(f"Stopped {count} processes that a killed `lab` or killed supervisor had left.")
        remove_socket(self._state)

    def _prepare(self, settings: Settings) -> None:
        state = self._state
        preflight.check_paths(state)
        for folder in (state.base, state.run, state.logs, state.data):
            make_open(folder)
        (state.run / "metrics").mkdir(exist_ok=True)
        all_services = services(settings, state)
        preflight.check(settings, state, all_services)
        backend.run(["python", "-m", "config.secrets", str(state.secrets)], settings, state)
        if settings.LAB_REFERENCE_APP == "on":
            postgres.make_cluster(state)
            postgres.configure(settings, state)
            render.write_nginx(settings, state)
        render.write_metrics_ingress(settings, state)
        render.write_prometheus(all_services, settings, state)
        redis_service.write_exporters_password(settings, state)
        render.write_supervisor(all_services, choose_cpus(settings), state)
        save(settings, state)

    def _start(self, settings: Settings) -> None:
        self._supervision.start()
        for group in start_groups(services(settings, self._state)):
            self._start_group(group, settings)
            if group[0].name == "postgres" and group[0].enabled:
                backend.load(settings, self._state)
        with step("Waiting for the first answer"):
            wait_for_api(settings)
            wait_for(self._all_running, seconds=10, what="the last service")

    def _start_group(self, group: list[Service], settings: Settings) -> None:
        start(group, self._supervision, settings, self._state)
        if group[0].name == "toxiproxy" and group[0].enabled:  # It starts without proxies.
            latency.apply(settings, self._state)

    def _all_running(self) -> bool:
        """Return whether all services run: supervisor reports a service as running after one
        second.
        """
        states = self._supervision.states()
        names = [s.name for s in services(self._running_settings(), self._state) if s.enabled]
        return {states[name] for name in names} == {"running"}

    def _running_settings(self) -> Settings:
        settings = self.settings()
        if settings is None or not self._supervision.alive:
            raise LabError("The stack is not running. Start it: lab up")
        return settings

    def _reference_settings(self) -> Settings:
        """Return the settings of a stack with the reference app."""
        settings = self._running_settings()
        require_reference_app(settings)
        return settings


def _differences(before: Settings, after: Settings) -> set[str]:
    return {name for name, value in after.as_env().items() if before.as_env()[name] != value}


def _reject_fixed(names: set[str]) -> None:
    # `choose_engine` has checked LAB_ENGINE: auto and native are the same stack here.
    fixed = ", ".join(sorted(name for name in names - {"LAB_ENGINE"} if is_fixed(name)))
    if fixed:
        raise UsageError(
            f"{fixed} can't change while the stack runs. Put it into .env, then "
            "`lab down` and `lab up`."
        )


def _absent_services() -> list[ServiceStatus]:
    """Return the services that this engine lacks, as `missing` and with the reason."""
    missing = {"alloy": "not in the native engine: exporters take its place"}
    if grafana.find_installation() is None:
        missing["grafana"] = grafana.absence_reason()
    return [ServiceStatus(name, "missing", None, reason) for name, reason in missing.items()]
