"""Running docker and what stand-ins are made with: the system's programs, or the unpacked ones."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import IO, Any

from lab.paths import BIN, PROGRAMS
from lab.stack.native.programs import library_env

STATE = PROGRAMS.parent / "compose-test"


def environment(**environ: str) -> dict[str, str]:
    """The unpacked programs on the PATH, behind the system's, and compose as docker's plugin."""
    unpacked = [str(PROGRAMS / folder) for folder in ("usr/bin", "usr/sbin", "bin", "sbin")]
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin", *unpacked])
    made = {**os.environ, "PATH": path, "DOCKER_CONFIG": str(_docker_config()), **_iptables()}
    return made | environ


def _iptables() -> dict[str, str]:
    """Where an iptables that was unpacked finds its extensions, without which it can do nothing."""
    if (PROGRAMS / "usr/sbin/iptables").is_symlink():
        for folder in PROGRAMS.glob("usr/lib/*/xtables"):
            return {"XTABLES_LIBDIR": str(folder)}
    return {}


def program(name: str) -> str | None:
    return shutil.which(name, path=environment()["PATH"])


def run(*argv: str, stdin: IO[bytes] | None = None, **environ: str) -> Any:
    """The completed command; the caller looks at its exit code."""
    env = environment_of(argv[0], **environ)
    return subprocess.run(argv, env=env, stdin=stdin, capture_output=True, text=True, check=False)


def environment_of(name: str, **environ: str) -> dict[str, str]:
    """The environment for a program, and for what it starts: dockerd starts iptables.

    Libraries that were unpacked beside a program are of no use to the system's own programs.
    """
    unpacked = PROGRAMS in Path(program(name) or "/").parents
    return environment(**environ) | (library_env() if unpacked else {})


def checked(*argv: str, **environ: str) -> str:
    """What the command printed.

    Raises:
        RuntimeError: it failed; with the end of what it said.
    """
    done = run(*argv, **environ)
    if done.returncode:
        said = (done.stdout + done.stderr).strip()[-3000:]
        raise RuntimeError(f"`{' '.join(argv)}` ended with exit code {done.returncode}:\n{said}")
    return str(done.stdout)


def _docker_config() -> Path:
    """Docker's configuration for these tests: nobody's logins, and our build of compose."""
    plugin = STATE / "docker-config/cli-plugins/docker-compose"
    if not plugin.is_symlink():
        plugin.parent.mkdir(parents=True, exist_ok=True)
        plugin.symlink_to(BIN / "docker-compose")
    return plugin.parent.parent
