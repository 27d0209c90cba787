"""The interface of an engine."""

import re
import subprocess
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from load_lab.errors import LabError, UsageError
from load_lab.machine.logs import NewText
from load_lab.settings import Settings

if TYPE_CHECKING:
    import psycopg

ServiceState = Literal["running", "starting", "stopped", "failed", "missing", "no answer"]


@dataclass(frozen=True)
class ServiceStatus:
    """One service; `group` is its name in measurements if it shares one with others."""

    name: str
    state: ServiceState
    url: str | None = None
    detail: str = ""
    group: str = ""


# No REST API of k6: at 127.0.0.1:6565, any user of this machine could stop or change a run.
NO_REST_API = ("--address", "")


@dataclass(frozen=True)
class K6Command:
    """How to run k6: the arguments up to k6's subcommand, the folder and the environment.

    `interrupt` and `kill` are the commands that send SIGINT and SIGKILL to k6, if `argv` starts
    another process than k6.
    """

    argv: list[str]
    cwd: Path
    env: dict[str, str]
    interrupt: tuple[str, ...] = ()
    kill: tuple[str, ...] = ()


class Engine(Protocol):
    """One running stack. Every method raises LabError with what to do next.

    `has_processes`: its services and k6 are processes of this machine, whose files, CPUs and copies
    are at hand; else they are in containers.
    """

    name: str
    has_processes: bool

    def up(self, settings: Settings) -> None:
        """Start what is not running, load the data if there is none, and wait for the first
        response.
        """

    def down(self) -> None:
        """Stop everything; the data stays."""

    def apply(self, settings: Settings) -> None:
        """Make `settings` active in the running stack.

        The native engine loses no request if LAB_SERVER is a gunicorn variant before and after. It
        restarts other servers, and docker recreates containers: both refuse connections for
        seconds.
        """

    def stop_load(self) -> int:
        """Stop the k6 that a killed `lab` left running; return the number of processes."""

    def exec(self, service: str, argv: list[str]) -> subprocess.CompletedProcess[str]:
        """Run a command where `service` runs."""

    def services(self) -> list[ServiceStatus]:
        """Return every service of the stack, running or not."""

    def settings(self) -> Settings | None:
        """Return the settings of the running stack; None when it is not running."""

    def token(self) -> str:
        """Return the token for the backend's /lab/settings."""

    def empty_caches(self, settings: Settings | None = None) -> AbstractContextManager[None]:
        """Stop Nginx and the backend for the block; afterwards they run with empty caches.

        With `settings`, they then run with those: one stop and one start for both. Requests queued
        by an overload are dropped; otherwise they would be answered first.
        """

    def sql(self, database: str, *statements: str) -> list[str]:
        """Run statements as Postgres's superuser, each in a separate transaction.

        Returns the first column of the last statement's rows, as text.
        """

    def connect_postgres(self) -> "psycopg.Connection[Any] | None":
        """Return a connection to Postgres as its superuser; None where there is none from here.

        Raises psycopg.Error if Postgres does not accept it.
        """

    def new_log(self, service: str) -> NewText:
        """Return what reads what a service's log (Nginx's: of errors) gets from now on."""

    def pids(self) -> dict[str, int]:
        """Return the main process of each service that is visible from here."""

    def versions(self) -> dict[str, str]:
        """Return the version of each program of the stack."""

    def limits(self) -> dict[str, str]:
        """Return the resource limits of each service that has any."""

    def logs(self, service: str, follow: bool) -> list[str]:
        """Return the command that prints the log of `service`."""

    def push_url(self, settings: Settings) -> str:
        """Return the URL that k6 pushes its metrics to."""

    def k6(self, settings: Settings, env: dict[str, str]) -> K6Command:
        """Return the command that runs k6 with `env`, on the load generator's CPUs."""


def require_processes(engine: Engine, command: str, reason: str) -> None:
    """Check that a command has the processes of the stack at hand.

    Raises:
        UsageError: they are in containers.
    """
    if not engine.has_processes:
        raise UsageError(
            f"`lab {command}` needs the native engine, since it {reason}; this one is "
            f"{engine.name}. Stop this stack (lab down), then: LAB_ENGINE=native lab {command}"
        )


def settings_of(engine: Engine) -> Settings:
    """Return the settings of the running stack.

    Raises:
        LabError: it is not running.
    """
    settings = engine.settings()
    if settings is None:
        raise LabError("The stack is not running. Start it: lab up")
    return settings


def require_reference_app(settings: Settings) -> None:
    """Raise LabError if the stack runs without the reference app."""
    if settings.LAB_REFERENCE_APP == "off":
        raise LabError(
            "The stack runs without the reference app (LAB_REFERENCE_APP=off). Name a target of "
            "your own: --target NAME. Or start the stack with it: lab down, then lab up"
        )


# By service. Nginx prints its version to standard error.
VERSION_COMMANDS = {
    "postgres": ["postgres", "--version"],
    "redis": ["redis-server", "--version"],
    "nginx": ["nginx", "-v"],
    "toxiproxy": ["toxiproxy-server", "-version"],
    "prometheus": ["prometheus", "--version"],
    "grafana": ["grafana", "--version"],
    "alloy": ["alloy", "--version"],
    "k6": ["k6", "version"],
}


def version_in(output: str) -> str:
    """Return the first version number in a program's output."""
    match = re.search(r"\d+(\.\d+)+", output)
    return match[0] if match else "unknown"
