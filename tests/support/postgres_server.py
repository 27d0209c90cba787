"""A Postgres of a test's own, by TCP and by a Unix socket in another folder than the usual one."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from load_lab.stack.native.program_paths import library_env, require
from load_lab.stack.native.services.start_order import postgres_user
from load_lab.stack.native.supervision import wait_for
from tests.support.ports import free_port


@dataclass(frozen=True)
class PostgresServer:
    pid: int
    port: int
    sockets: Path

    def settings(self, host: str) -> dict[str, Any]:
        """Return the entry of DATABASES with this host; "" is the folder of the Unix socket."""
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": "postgres",
            "USER": "postgres",
            "HOST": host or str(self.sockets),
            "PORT": str(self.port),
        }


@contextmanager
def running_postgres(port: int = 0, *settings: str) -> Iterator[PostgresServer]:
    """Yield a server; `settings` are like shared_preload_libraries=pg_stat_statements."""
    folder, port = Path(tempfile.mkdtemp(prefix="load-lab-pg-")), port or free_port()
    user, env = postgres_user(), {**os.environ, **library_env()}
    sockets = folder / "sockets"
    sockets.mkdir()
    for each in (folder, sockets):
        each.chmod(0o755)
        if user:
            shutil.chown(each, user)
    data = str(folder / "data")
    init = [str(require("initdb")), "-D", data, "-U", "postgres", "--auth", "trust", "--no-sync"]
    subprocess.run(init, user=user, cwd="/", env=env, check=True, stdout=subprocess.DEVNULL)
    argv = [str(require("postgres")), "-D", data, "-k", str(sockets), "-p", str(port)]
    argv += ["-c", "listen_addresses=127.0.0.1,::1", "-c", "logging_collector=on"]
    argv += [word for setting in settings for word in ("-c", setting)]
    process = subprocess.Popen(argv, user=user, cwd="/", env=env, stderr=subprocess.DEVNULL)
    try:
        url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        wait_for(lambda: _answers(url), seconds=30, what="Postgres")
        yield PostgresServer(process.pid, port, sockets)
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True
