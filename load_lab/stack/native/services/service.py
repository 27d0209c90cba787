"""One service of the native engine: how it is started, pinned and checked for readiness."""

from dataclasses import dataclass, field
from pathlib import Path

from load_lab.machine.cpus import Cpus
from load_lab.paths import lab_file
from load_lab.settings import LOOPBACK
from load_lab.stack.measuring_services import Side, side_of


@dataclass(frozen=True)
class Service:
    """One process under supervisor. It is ready once it listens on `host` and `port`; port 0 means
    that it does not listen.
    """

    name: str
    argv: list[str]
    port: int
    url: str
    host: str = LOOPBACK
    env: dict[str, str] = field(default_factory=dict)
    user: str | None = None
    cwd: Path = field(default_factory=lab_file)
    stop_signal: str = "TERM"
    # The URL that returns 200 once the service is ready; without one, an open port is enough.
    alive_url: str = ""
    # Whether the settings enable it; otherwise it is listed, but not started.
    enabled: bool = True

    @property
    def side(self) -> Side:
        return side_of(self.name)


def pinned_command(service: Service, cpus: Cpus) -> list[str]:
    """Return the command of `service`, pinned to the CPUs of its side."""
    return ["taskset", "-c", cpus.target if service.side == "target" else cpus.load, *service.argv]
