"""Which project's stack listens on a port."""

import subprocess
from contextlib import suppress
from pathlib import Path

import psutil

# Of compose: the name of its project.
_COMPOSE_PROJECT = "com.docker.compose.project"


def port_owner(port: int) -> str | None:
    """Return what names the stack on a port: its project's folder, or its compose project; None if
    it is another program, or one that this user may not see.
    """
    return _native_owner(port) or _docker_owner(port)


def _native_owner(port: int) -> str | None:
    with suppress(psutil.Error, OSError):
        for each in psutil.net_connections("tcp"):
            if each.status == psutil.CONN_LISTEN and each.laddr[1:2] == (port,) and each.pid:
                base = psutil.Process(each.pid).environ().get("LAB_STACK")
                if base:
                    return str(Path(base).parent if Path(base).name == ".lab" else base)
    return None


def _docker_owner(port: int) -> str | None:
    form = f'{{{{.Label "{_COMPOSE_PROJECT}"}}}}'
    argv = ["docker", "ps", "--filter", f"publish={port}", "--format", form]
    with suppress(FileNotFoundError, subprocess.TimeoutExpired):
        process = subprocess.run(argv, capture_output=True, text=True, timeout=5, check=False)
        name = process.stdout.strip()
        return f"compose's project {name}" if name else None
    return None
