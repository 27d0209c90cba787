"""Apps from PyPI that the lab does not know: installed once, started on the target's CPUs."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from load_lab.paths import ROOT
from load_lab.settings import LOOPBACK
from load_lab.stack.native.program_paths import library_env, require
from load_lab.stack.native.supervision import port_is_open, wait_for
from tests.support.ports import free_port


@contextmanager
def timed(what):
    started = time.monotonic()
    yield
    print(f"{time.monotonic() - started:6.0f} s  {what}", file=sys.__stderr__)


def folder_of(name: str) -> Path:
    return ROOT / ".lab/apps" / name


def digest_of(*files: Path) -> str:
    return sha256(b"".join(each.read_bytes() for each in files)).hexdigest()[:12]


def install(name: str) -> Path:
    """Install what tests/apps/NAME.txt pins, once; return the folder of its programs."""
    requirements = ROOT / "tests/apps" / f"{name}.txt"
    venv = folder_of(name) / f"venv-{digest_of(requirements)}"
    if not (venv / "complete").exists():
        venv.parent.mkdir(parents=True, exist_ok=True)
        with timed(f"install {name}"):
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], check=True)
            pip = [str(venv / "bin/pip"), "install", "--quiet", "--require-hashes"]
            subprocess.run([*pip, "-r", str(requirements)], check=True)
        (venv / "complete").touch()
    return venv / "bin"


def create_database(stack, name: str, password: str, stored: str) -> bool:
    """Create a database and its role of the same name. Return whether it has the data of `stored`,
    a database that an earlier run made with `store_database`.
    """
    stack.sql("postgres", f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    others = stack.sql("postgres", f"SELECT datname FROM pg_database WHERE datname ^@ '{name}_'")
    if stored in others:
        template = f"CREATE DATABASE {name} OWNER {name} TEMPLATE {stored}"
        stack.sql("postgres", template)
        return True
    stack.sql(
        "postgres",
        *(f"DROP DATABASE {each}" for each in others),
        f"DROP ROLE IF EXISTS {name}",
        f"CREATE ROLE {name} LOGIN PASSWORD '{password}'",
        f"CREATE DATABASE {name} OWNER {name}",
    )
    return False


def store_database(stack, name: str, stored: str) -> None:
    stack.sql("postgres", f"CREATE DATABASE {stored} TEMPLATE {name}")


@contextmanager
def redis(folder: Path):
    """Start a Redis for the app; yield its port."""
    port = free_port()
    server = [str(require("redis-server")), "--port", str(port), "--save", "", "--bind", LOOPBACK]
    env = os.environ | library_env()
    with _program(server, port, env, folder):
        yield port


@contextmanager
def gunicorn(programs: Path, port: int, options, env, folder: Path):
    """Start the app under gunicorn on the target's CPUs; yield its address."""
    server = ["taskset", "-c", "0", str(programs / "gunicorn"), "--workers", "2"]
    argv = [*server, "--timeout", "120", "--bind", f"{LOOPBACK}:{port}", *options]
    with _program(argv, port, env, folder):
        yield f"http://{LOOPBACK}:{port}"


@contextmanager
def _program(argv, port, env, folder):
    log = folder / f"{port}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(argv, env=env, cwd=folder, stdout=output, stderr=output)
    try:
        wait_for(lambda: port_is_open(LOOPBACK, port), seconds=60, what=f"a server (see {log})")
        yield
    finally:
        process.terminate()
        process.wait()
