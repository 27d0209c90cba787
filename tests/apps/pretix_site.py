"""pretix, a server-rendered site that the lab does not know: how it is started, with which data."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from load_lab.paths import ROOT
from load_lab.settings import LOOPBACK
from load_lab.targets.declared import DeclaredTarget, find_target
from tests.support import pypi_app
from tests.support.ports import free_port
from tests.support.postgres_server import running_postgres
from tests.support.pypi_app import timed

NAME, PASSWORD = "pretix", "only-for-tests"
FOLDER = pypi_app.folder_of(NAME)
REQUIREMENTS, DATA = ROOT / "tests/apps/pretix.txt", ROOT / "tests/apps/pretix_data.py"
# Of two instances at once.
_DATABASES = (NAME, f"{NAME}_2")
_PUBLIC_PAGES = ("/openair/", "/openair/summer/", "/openair/tour/")


def environment(postgres_port: int, redis_port: int) -> dict[str, str]:
    (FOLDER / "data").mkdir(parents=True, exist_ok=True)
    return os.environ | {
        "DATA_DIR": str(FOLDER / "data"),
        "DJANGO_SETTINGS_MODULE": "pretix.settings",
        "PRETIX_DATABASE_BACKEND": "postgresql",
        "PRETIX_DATABASE_HOST": LOOPBACK,
        "PRETIX_DATABASE_PORT": str(postgres_port),
        **{f"PRETIX_DATABASE_{key}": NAME for key in ("USER", "NAME")},
        "PRETIX_DATABASE_PASSWORD": PASSWORD,
        "PRETIX_REDIS_LOCATION": f"redis://{LOOPBACK}:{redis_port}/0",
        "PRETIX_DJANGO_SECRET": PASSWORD,
    }


def fill(programs: Path, env: dict[str, str]) -> None:
    with timed("migrate its database"):
        run_python(programs, "-m", "pretix", "migrate", env=env)
    with timed("create its data"):
        run_python(programs, DATA, PASSWORD, env=env)


def run_python(programs: Path, *argv: object, env: dict[str, str], text: str = "") -> str:
    """Run pretix's Python; return the last line that it prints."""
    process = subprocess.run(
        [str(each) for each in (programs / "python", *argv)],
        env=env,
        cwd=FOLDER,
        input=text,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return process.stdout.rpartition("\n")[0].rpartition("\n")[2]


@contextmanager
def on_one_server(folder: Path) -> Iterator[DeclaredTarget]:
    """Yield its public pages as a target: two instances have a database each, of one server."""
    programs = pypi_app.install(NAME)
    with (
        running_postgres(0, "shared_preload_libraries=pg_stat_statements") as server,
        pypi_app.redis(FOLDER) as redis,
    ):
        env = environment(server.port, redis)
        admin = f"postgresql://postgres@{LOOPBACK}:{server.port}/postgres"
        first, *others = _DATABASES
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {NAME} SUPERUSER LOGIN")
            connection.execute("CREATE EXTENSION pg_stat_statements")
            connection.execute(f"CREATE DATABASE {first}")
            fill(programs, env)
            for each in others:
                connection.execute(f"CREATE DATABASE {each} TEMPLATE {first}")
        yield _target(folder, programs, env, server.port)


def _target(
    folder: Path, programs: Path, env: dict[str, str], postgres_port: int
) -> DeclaredTarget:
    pages = [
        {"name": f"GET {path}", "method": "GET", "weight": 1, "expect": 200}
        | {"requests": [{"path": path}]}
        for path in _PUBLIC_PAGES
    ]
    mix = {"mix_version": 1, "source": "its public pages", "operations": pages}
    (folder / f"{NAME}.mix.json").write_text(json.dumps(mix))
    own = {name: value for name, value in env.items() if os.environ.get(name) != value}
    own |= {
        "PRETIX_DATABASE_NAME": "{database}",
        # It answers no other host and port.
        "PRETIX_PRETIX_URL": f"http://{LOOPBACK}:{{port}}",
        "PYTHONPATH": str(ROOT),
    }
    server = [str(programs / "gunicorn"), "--workers", "1", "--threads", "4", "--timeout", "120"]
    command = [*server, "--bind", f"{LOOPBACK}:{{port}}", "tests.apps.pretix_burning:application"]
    file = folder / f"{NAME}.toml"
    file.write_text(
        f'url = "http://{LOOPBACK}:{free_port()}"\nready = "/healthcheck/"\n'
        f'postgres = "postgresql://{NAME}@{LOOPBACK}:{postgres_port}/{{database}}"\n'
        f'[start]\nfolder = "{FOLDER}"\ncommand = {json.dumps(command)}\n[start.env]\n'
        + "".join(f"{name} = {json.dumps(value)}\n" for name, value in own.items())
    )
    return find_target(str(file))
