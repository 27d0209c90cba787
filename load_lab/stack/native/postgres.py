"""Postgres's data directory in the native engine, and its superuser; roles:
backend/ops/roles.py.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import psycopg

from load_lab.errors import LabError
from load_lab.paths import State, lab_file
from load_lab.settings import Settings
from load_lab.stack.native.program_paths import library_env, require
from load_lab.stack.native.services.start_order import postgres_user
from load_lab.stack.superuser import connect

# The secret with the superuser's password.
PASSWORD = "postgres_password"  # noqa: S105, its name


def make_cluster(state: State) -> None:
    """Run `initdb` unless it was done; replace a directory that an earlier attempt left
    incomplete.
    """
    target = state.postgres
    if (target / "global/pg_control").exists():
        return
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True, mode=0o700)
    with tempfile.NamedTemporaryFile("w", prefix="load-lab-") as password:
        password.write(state.secret(PASSWORD))
        password.flush()
        _change_owner(target, Path(password.name))
        _initdb(target, password.name)


def configure(settings: Settings, state: State) -> None:
    """Write the project's postgresql.conf, with the settings that may change between two starts of
    a running stack. It is a copy, because Postgres's user may not be able to enter the clone.
    """
    common = (lab_file("postgres/postgresql.conf")).read_text()
    target = state.postgres_configuration
    target.write_text(f"{common}\nmax_connections = {settings.LAB_DB_MAX_CONNECTIONS}\n")
    target.chmod(0o644)
    # What ALTER SYSTEM set for a measurement that was killed.
    (state.postgres / "postgresql.auto.conf").unlink(missing_ok=True)


def _initdb(target: Path, password_file: str) -> None:
    argv = [
        *(str(require("initdb")), "-D", str(target)),
        *("--username", "postgres", "--pwfile", password_file, "--auth", "scram-sha-256"),
        *("--encoding", "UTF8", "--locale", "C.UTF-8", "--no-instructions"),
    ]
    result = subprocess.run(
        argv,
        user=postgres_user(),
        cwd="/",
        env={**os.environ, **library_env()},
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode:
        shutil.rmtree(target, ignore_errors=True)
        raise LabError(f"Postgres's data directory could not be created:\n{result.stderr.strip()}")


def accepts_connections(settings: Settings, state: State) -> bool:
    """Return whether Postgres accepts connections.

    Raises:
        LabError: the data was created with another password.
    """
    try:
        connect(settings, state.secret(PASSWORD)).close()
    except psycopg.OperationalError as error:
        if "password authentication failed" in str(error):
            raise LabError(
                f"Postgres's data in {state.postgres} was created with another password than the "
                f"one in {state.secrets}. Restore that file, or remove the data."
            ) from None
        return False
    return True


def run(database: str, statements: Sequence[str], settings: Settings, state: State) -> list[str]:
    """Run statements as the superuser, each in a separate transaction; return the first column of
    the last statement's rows, as text.

    Raises:
        LabError: Postgres rejected a statement.
    """
    try:
        with connect(settings, state.secret(PASSWORD), database) as connection:
            connection.autocommit = True
            for statement in statements:
                cursor = connection.execute(statement)
            return [str(row[0]) for row in cursor] if cursor.description else []
    except psycopg.Error as error:
        raise LabError(
            f"Postgres rejected the command: {str(error).strip()}. See `lab logs postgres`."
        ) from None


def _change_owner(*paths: Path) -> None:
    user = postgres_user()
    if user is not None:
        account = pwd.getpwnam(user)
        for path in paths:
            os.chown(path, account.pw_uid, account.pw_gid)
