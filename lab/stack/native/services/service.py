"""One service of the native engine: how it is started, pinned and found ready."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from lab.host.cpus import Cpus
from lab.paths import ROOT
from lab.settings import LOOPBACK


@dataclass(frozen=True)
class Service:
    """One process under supervisor. It answers at `host` and `port` once it is ready; one with port
    0 listens nowhere itself.
    """

    name: str
    argv: list[str]
    port: int
    url: str
    host: str = LOOPBACK
    side: Literal["target", "load"] = "target"
    env: dict[str, str] = field(default_factory=dict)
    user: str | None = None
    cwd: Path = ROOT
    stop_signal: str = "TERM"
    # The part of its command line that no other process has, nor another stack's: by this its
    # processes are measured (lab/stack/native/services/exporters.py).
    mark: str = ""
    # As what they are measured, when not by the service's name.
    group: str = ""
    # Where it answers 200 once it really serves; without one a port that is open will do.
    alive_url: str = ""
    # Whether the settings want it; else it is known, and not started.
    wanted: bool = True


def pinned(service: Service, cpus: Cpus) -> list[str]:
    """The command of `service`, on the CPUs of its side."""
    return ["taskset", "-c", cpus.target if service.side == "target" else cpus.load, *service.argv]
