"""Grafana as a service of the native engine, where the machine has the program.

The distribution has no package for it, so the lab does not install it.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from load_lab.paths import State, lab_file
from load_lab.settings import LOOPBACK, Settings
from load_lab.stack.native.program_paths import find
from load_lab.stack.native.services.service import Service

FOLDER = lab_file("grafana")
# The dashboard on its home page.
_HOME_DASHBOARD = "lab-load-test.json"

# Grafana's home where a package installed it.
_PACKAGE_HOME = Path("/usr/share/grafana")


@dataclass(frozen=True)
class Installation:
    """An installed Grafana: its command, and the folder with its web pages and defaults."""

    command: list[str]
    home: Path


def find_installation() -> Installation | None:
    """Return the machine's Grafana; None when it has none, or only a part."""
    home = _home()
    command = _command()
    return Installation(command, home) if command and home else None


def absence_reason() -> str:
    """Return why Grafana is missing, and what to do."""
    if _command() is None:
        return "no grafana on the PATH; install it, then `lab down` and `lab up`"
    return "its folder conf/defaults.ini was not found; name its home in GF_PATHS_HOME"


def service(settings: Settings, state: State, program: Installation) -> Service:
    """Return Grafana as a service: anyone on 127.0.0.1 can view it, only its administrator can
    edit.
    """
    data = state.data / "grafana"
    port = settings.LAB_GRAFANA_PORT
    return Service(
        name="grafana",
        argv=[
            *program.command,
            *("--homepath", str(program.home), "--config", str(FOLDER / "grafana.ini")),
            f"cfg:paths.data={data}",
        ],
        port=port,
        url=f"http://{LOOPBACK}:{port}",
        env={
            "GF_SERVER_HTTP_ADDR": LOOPBACK,
            "GF_SERVER_HTTP_PORT": str(port),
            "GF_PATHS_LOGS": str(state.logs),
            "GF_PATHS_PLUGINS": str(data / "plugins"),
            "GF_PATHS_PROVISIONING": str(FOLDER / "provisioning"),
            "GF_SECURITY_ADMIN_PASSWORD": f"$__file{{{state.secrets / 'grafana_password'}}}",
            "GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH": str(
                FOLDER / "dashboards" / _HOME_DASHBOARD
            ),
            # Read by the files below grafana/provisioning.
            "PROMETHEUS_URL": settings.prometheus_url,
            "DASHBOARDS_PATH": str(FOLDER / "dashboards"),
        },
    )


def _command() -> list[str] | None:
    if program := find("grafana"):
        return [str(program), "server"]
    # The program's name until version 9.3.
    program = find("grafana-server")
    return [str(program)] if program else None


def _home() -> Path | None:
    """Return Grafana's home: GF_PATHS_HOME; else next to the program (an archive), or the
    package's.
    """
    setting = os.environ.get("GF_PATHS_HOME")
    program = find("grafana") or find("grafana-server")
    archives = [program.resolve().parent.parent] if program else []
    candidates = [Path(setting)] if setting else [*archives, _PACKAGE_HOME]
    return next((home for home in candidates if (home / "conf/defaults.ini").exists()), None)
