"""Run docker and the programs that build stand-ins: the system's or the unpacked ones."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import IO, Any

from load_lab.paths import BIN, PROGRAMS
from load_lab.stack.native.program_paths import library_env

STATE = PROGRAMS.parent / "compose-test"


def environment(**environ: str) -> dict[str, str]:
    """Return the environment: unpacked programs last on the PATH, compose as docker's plugin."""
    unpacked = [str(PROGRAMS / folder) for folder in ("usr/bin", "usr/sbin", "bin", "sbin")]
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin", *unpacked])
    variables = {**os.environ, "PATH": path, "DOCKER_CONFIG": str(_docker_config()), **_iptables()}
    return variables | environ


def _iptables() -> dict[str, str]:
    """Return the path to the extensions of an unpacked iptables, which it needs."""
    if (PROGRAMS / "usr/sbin/iptables").is_symlink():
        for folder in PROGRAMS.glob("usr/lib/*/xtables"):
            return {"XTABLES_LIBDIR": str(folder)}
    return {}


def program(name: str) -> str | None:
    return shutil.which(name, path=environment()["PATH"])


def run(*argv: str, stdin: IO[bytes] | None = None, **environ: str) -> Any:
    """Return the completed command; the caller checks its exit code."""
    env = environment_of(argv[0], **environ)
    return subprocess.run(argv, env=env, stdin=stdin, capture_output=True, text=True, check=False)


def environment_of(name: str, **environ: str) -> dict[str, str]:
    """Return the environment of a program and its children: dockerd starts iptables.

    Unpacked libraries are only for unpacked programs; the system's programs do not need them.
    """
    unpacked = PROGRAMS in Path(program(name) or "/").parents
    return environment(**environ) | (library_env() if unpacked else {})


def check_output(*argv: str, **environ: str) -> str:
    """Return the command's standard output.

    Raises:
        RuntimeError: the command failed; the message has the end of its output.
    """
    result = run(*argv, **environ)
    if result.returncode:
        output = (result.stdout + result.stderr).strip()[-3000:]
        raise RuntimeError(
            f"`{' '.join(argv)}` ended with exit code {result.returncode}:\n{output}"
        )
    return str(result.stdout)


def _docker_config() -> Path:
    """Return Docker's configuration for these tests: no logins, and the project's compose."""
    plugin = STATE / "docker-config/cli-plugins/docker-compose"
    if not plugin.is_symlink():
        plugin.parent.mkdir(parents=True, exist_ok=True)
        plugin.symlink_to(BIN / "docker-compose")
    return plugin.parent.parent
