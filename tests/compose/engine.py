"""A Docker engine for the tests: a running one, or one that is started for them."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.compose.commands import STATE, check_output, environment_of, program, run
from tests.support.missing import missing

_SECONDS_TO_START = 60


@contextmanager
def docker_engine() -> Iterator[str]:
    """Provide a running engine; yield a description of it."""
    if run("docker", "info").returncode == 0:
        yield "the machine's own Docker engine"
        return
    try:
        process = _start()
    except RuntimeError as reason:
        missing(str(reason))
    try:
        yield f"a Docker engine of its own, {_version()}"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


def _start() -> "subprocess.Popen[bytes]":
    if os.getuid() != 0:
        raise RuntimeError(
            "No Docker engine answers, and only root can start one. Start it, or sudo."
        )
    if program("dockerd") is None:
        raise RuntimeError("dockerd is not here. `make test-core` unpacks it where there is apt.")
    log = STATE / "dockerd.log"
    # Images and containers are stored below the project; socket and network rules are the default.
    argv = [
        "dockerd",
        "--data-root",
        str(STATE / "docker"),
        "--pidfile",
        str(STATE / "dockerd.pid"),
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(
            argv, env=environment_of("dockerd"), stdout=output, stderr=output
        )
    for _ in range(_SECONDS_TO_START * 4):
        if run("docker", "info").returncode == 0:
            return process
        if process.poll() is not None:
            break
        time.sleep(0.25)
    process.kill()
    raise RuntimeError(f"dockerd did not start. Its log ends:\n{log.read_text()[-3000:]}")


def _version() -> str:
    return check_output("docker", "version", "--format", "{{.Server.Version}}").strip()
