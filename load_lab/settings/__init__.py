"""The settings of a stack: read from the shell and `.env`, validated, and stored while it runs."""

import os
from collections.abc import Mapping
from typing import Any

from lab_settings import rules
from lab_settings.declaration import Declaration, defaults, is_fixed
from lab_settings.messages import SettingsError, parse
from lab_settings.settings_file import read_settings, write_settings
from pydantic import model_validator

from load_lab.errors import UsageError
from load_lab.paths import State, project
from load_lab.settings.env_file import read_env_file

# Variables with the prefix LAB_ that are not settings: the project, its state directory, the lock
# of measurements, and what the lab passes to its own programs.
NOT_SETTINGS = {"LAB_PROJECT", "LAB_STATE_DIR", "LAB_LOCK", "LAB_STACK", "LAB_TOKEN", "LAB_K6_CPUS"}

# Listen address of all services that are not public: all but Nginx and the metrics ingress.
LOOPBACK = "127.0.0.1"


class Settings(Declaration):
    """Every setting of a stack, validated against the others."""

    @model_validator(mode="after")
    def _check_combinations(self) -> "Settings":
        for check in rules.CHECKS:
            check(self.model_dump())
        return self

    @property
    def target_url(self) -> str:
        host = LOOPBACK if self.LAB_BIND == "0.0.0.0" else self.LAB_BIND  # noqa: S104
        return f"http://{host}:{self.LAB_HTTP_PORT}"

    @property
    def backend_url(self) -> str:
        return f"http://{LOOPBACK}:{self.LAB_BACKEND_PORT}"

    @property
    def delayed_postgres_port(self) -> int:
        """Toxiproxy's port in front of Postgres."""
        return self.LAB_TOXIPROXY_PORT + 1

    @property
    def delayed_backend_port(self) -> int:
        """Toxiproxy's port in front of the backend."""
        return self.LAB_TOXIPROXY_PORT + 2

    @property
    def server_url(self) -> str:
        """The server's URL for its clients, such as Nginx: toxiproxy's while there is a delay."""
        port = self.delayed_backend_port if self.is_delayed else self.LAB_BACKEND_PORT
        return f"http://{LOOPBACK}:{port}"

    @property
    def worker_slots(self) -> int | None:
        """Requests that the server works on at once; None for ASGI, which has no limit."""
        threads = {"gunicorn-sync": 1, "gunicorn-gthread": self.LAB_THREADS}.get(self.LAB_SERVER)
        return threads and self.LAB_WORKERS * threads

    @property
    def metrics_url(self) -> str:
        return f"http://{LOOPBACK}:{self.LAB_METRICS_PORT}/metrics"

    @property
    def nginx_status_url(self) -> str:
        return f"http://{LOOPBACK}:{self.LAB_NGINX_STATUS_PORT}"

    @property
    def prometheus_url(self) -> str:
        return f"http://{LOOPBACK}:{self.LAB_PROMETHEUS_PORT}"

    @property
    def push_url(self) -> str:
        """Prometheus's remote write receiver."""
        return f"{self.prometheus_url}/api/v1/write"

    @property
    def alloy_push_url(self) -> str:
        """Alloy's remote write receiver, in front of Prometheus."""
        return f"http://{LOOPBACK}:{self.LAB_ALLOY_PUSH_PORT}/api/v1/metrics/write"


def load_settings(environ: Mapping[str, str] | None = None) -> Settings:
    """Return the settings for a new stack: the shell overrides `.env`, which overrides the
    defaults.

    Raises:
        UsageError: a name or a value is unknown, or `.env` can't be read.
    """
    shell = os.environ if environ is None else environ
    return _validate(
        {**defaults(), **_lab_settings(read_env_file(project().env_file)), **_lab_settings(shell)}
    )


def restart_settings(running: Settings) -> Settings:
    """Return the settings of a new start, with the running stack's address, ports, CPUs and
    data.
    """
    fixed = {name: value for name, value in running.as_env().items() if is_fixed(name)}
    return _validate({**load_settings().as_env(), **fixed})


def running_settings(state: State) -> Settings | None:
    """Return the settings of the running stack; None when none was started.

    Raises:
        UsageError: another version of the lab started it.
    """
    try:
        return stored_settings(read_settings(state.settings), str(state.settings))
    except FileNotFoundError:
        return None


def stored_settings(stored: Mapping[str, Any], place: str) -> Settings:
    """Return the settings that were stored in a place.

    Raises:
        UsageError: another version of the lab stored them.
    """
    if different := sorted(set(stored) ^ set(Settings.model_fields)):
        raise UsageError(
            f"{place} is of another version of the lab: it differs in {', '.join(different)}. Use "
            "the lab that wrote it, or move it away."
        )
    return _validate(stored)


def update_settings(settings: Settings, assignments: list[str]) -> Settings:
    """Return `settings` with NAME=VALUE `assignments` applied.

    Raises:
        UsageError: an assignment has another format, or an unknown name or value.
    """
    pairs = [a.partition("=") for a in assignments]
    for assignment, (_, equals, _) in zip(assignments, pairs, strict=True):
        if not equals:
            raise UsageError(f"'{assignment}' is not a setting. Write NAME=VALUE.")
    return _validate({**settings.as_env(), **{name: value for name, _, value in pairs}})


def update_live_settings(settings: Settings, values: Mapping[str, str]) -> Settings:
    """Return `settings` with `values` that a running stack can change to.

    Raises:
        UsageError: a name or value is unknown, or can't change while the stack runs.
    """
    for name in values:
        if is_fixed(name):
            raise UsageError(f"{name} can't change while the stack runs; set it before `lab up`.")
    return update_settings(settings, [f"{name}={value}" for name, value in values.items()])


def require_same(running: Settings, measured: Settings, beginnings: tuple[str, ...]) -> None:
    """Check that the running stack has those settings of a stored run whose names begin so.

    Raises:
        UsageError: it has others.
    """
    now, then = running.as_env(), measured.as_env()
    for name, value in then.items():
        if name.startswith(beginnings) and now[name] != value:
            raise UsageError(
                f"The run had {name}={value}, the running stack has {name}={now[name]}. Stop it "
                f"with `lab down`, set {name}={value}, and start it: lab up"
            )


def save(settings: Settings, state: State) -> None:
    """Store the settings of the running stack."""
    write_settings(state.settings, settings.as_env())


def _lab_settings(values: Mapping[str, str]) -> dict[str, str]:
    """Return only the settings; docker-compose.yml also reads variables LAB_…_IMAGE."""
    return {
        name: value
        for name, value in values.items()
        if name.startswith("LAB_") and name not in NOT_SETTINGS and not name.endswith("_IMAGE")
    }


def _validate(values: Mapping[str, Any]) -> Settings:
    try:
        return parse(Settings, values)
    except SettingsError as error:
        raise UsageError(str(error)) from None
