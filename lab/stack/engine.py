"""What an engine can do."""

import re
import subprocess
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from lab.settings import Settings

ServiceState = Literal["running", "starting", "stopped", "failed", "missing"]


@dataclass(frozen=True)
class ServiceStatus:
    """One service: its name, its state, where it answers, and what there is to say about it."""

    name: str
    state: ServiceState
    url: str | None = None
    detail: str = ""


# k6 would let everyone on this machine stop a run, or change it, at 127.0.0.1:6565.
UNHEARD = ("--address", "")


@dataclass(frozen=True)
class K6Command:
    """How to run k6: the argument list before the script's name, in which folder.

    `interrupt` sends SIGINT to a k6 that is not the process that `argv` starts.
    """

    argv: list[str]
    cwd: Path
    env: dict[str, str]
    interrupt: tuple[str, ...] = ()


class Engine(Protocol):
    """One running stack. Every method raises LabError with what to do next."""

    name: str

    def up(self, settings: Settings) -> None:
        """Start what is not running, load the data if there is none, and wait until it answers."""

    def down(self) -> None:
        """Stop everything and leave the data."""

    def apply(self, settings: Settings) -> None:
        """Make `settings` active in the running stack.

        The native engine loses no request while LAB_SERVER is one of gunicorn's kinds and stays
        one; other servers are restarted, and docker recreates containers: both refuse for seconds.
        """

    def exec(self, service: str, argv: list[str]) -> subprocess.CompletedProcess[str]:
        """Run a command where `service` runs."""

    def services(self) -> list[ServiceStatus]:
        """Every service of the stack, running or not."""

    def settings(self) -> Settings | None:
        """The settings of the running stack; None when it is not running."""

    def token(self) -> str:
        """What opens the backend's /lab/settings."""

    def emptied(self, settings: Settings | None = None) -> AbstractContextManager[None]:
        """Nginx and the backend are stopped inside; after it they run, with empty caches.

        They run with `settings`, where they are given: one stop and one start for both. What an
        overload left waiting is dropped: it would be answered first.
        """

    def sql(self, database: str, *statements: str) -> list[str]:
        """Run statements as Postgres's superuser, each in a transaction of its own.

        Returns the first column of the last statement's rows, as text.
        """

    def pids(self) -> dict[str, int]:
        """The main process of each service that can be seen from here."""

    def versions(self) -> dict[str, str]:
        """The version of each program of the stack."""

    def limits(self) -> dict[str, str]:
        """What each service may use at most, where something bounds it."""

    def logs(self, service: str, follow: bool) -> list[str]:
        """The command that prints the log of `service`."""

    def push_url(self, settings: Settings) -> str:
        """Where k6 pushes its metrics to."""

    def k6(self, settings: Settings, env: dict[str, str]) -> K6Command:
        """How to run k6 with `env`, on the load generator's CPUs."""


# By service. Nginx answers on standard error.
ASKED = {
    "postgres": ["postgres", "--version"],
    "redis": ["redis-server", "--version"],
    "nginx": ["nginx", "-v"],
    "toxiproxy": ["toxiproxy-server", "-version"],
    "prometheus": ["prometheus", "--version"],
    "grafana": ["grafana", "--version"],
    "alloy": ["alloy", "--version"],
    "k6": ["k6", "version"],
}


def version_in(said: str) -> str:
    """The first version number in what a program said of itself."""
    match = re.search(r"\d+(\.\d+)+", said)
    return match[0] if match else "unknown"
