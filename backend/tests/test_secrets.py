"""Secrets: created once, private to their owner, copied per reader; Postgres gets hashes."""

import os
import resource
import signal
import stat
import subprocess
import sys

import psycopg
import pytest
from config import env
from config.secrets import NAMES, READERS, distribute_secrets, make_secrets
from lab_settings.secret_reader import SecretError
from ops import roles

from load_lab.errors import LabError
from load_lab.paths import ROOT, State


def _mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def _text(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_secrets_are_created_once_and_private_to_their_owner(tmp_path):
    folder = tmp_path / "s"
    assert make_secrets(folder) == list(NAMES)
    before = _text(folder)
    assert {_mode(path) for path in folder.iterdir()} == {0o600}
    assert _mode(folder) == 0o700
    assert make_secrets(folder) == []
    assert _text(folder) == before
    assert all(len(before[name]) >= 48 for name in NAMES)
    assert len({before[name] for name in NAMES}) == len(NAMES)


def test_two_stacks_share_no_secret_value(tmp_path):
    for name in "ab":
        make_secrets(tmp_path / name)
    mine, theirs = _text(tmp_path / "a"), _text(tmp_path / "b")
    assert not set(mine.values()) & set(theirs.values())


def test_hash_follows_a_replaced_secret_without_revealing_it(tmp_path):
    make_secrets(tmp_path)
    before = _text(tmp_path)
    (tmp_path / "redis_password").write_text("another, from an editor" * 3 + "\n")
    assert make_secrets(tmp_path) == []
    after = _text(tmp_path)
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"redis_password", "redis.acl"}
    assert "another" not in after["redis.acl"]
    assert before["push_password"] not in after["push.htpasswd"]


@pytest.mark.parametrize("text", ["", "\n", "3f9a0c" * 9])
@pytest.mark.parametrize("name", NAMES)
def test_empty_or_cut_secret_is_refused_everywhere(name, text, tmp_path, monkeypatch):
    make_secrets(tmp_path / "secrets")
    (tmp_path / "secrets" / name).write_text(text)
    monkeypatch.setenv("BACKEND_SECRETS_DIR", str(tmp_path / "secrets"))
    readers = {
        SecretError: lambda: make_secrets(tmp_path / "secrets"),
        env.EnvError: lambda: env.secret(name),
        LabError: lambda: State(tmp_path).secret(name),
    }
    for error, read in readers.items():
        with pytest.raises(
            error, match=rf"{name} is (cut|empty): .* remove the file and run `lab up`"
        ):
            read()


def test_cut_secret_ends_the_setup_with_one_message(tmp_path):
    make_secrets(tmp_path)
    (tmp_path / "lab_token").write_text("")
    process = _setup(tmp_path)
    assert process.returncode == 1
    assert process.stderr.startswith("error: The secret in")
    assert "Traceback" not in process.stderr


def test_cut_hash_is_written_anew(tmp_path):
    make_secrets(tmp_path)
    before = _text(tmp_path)
    for name in ("redis.acl", "push.htpasswd"):
        (tmp_path / name).write_text("")
    make_secrets(tmp_path)
    assert _text(tmp_path) == before


def test_full_disk_leaves_no_part_of_a_secret(tmp_path):
    """A limit on the size of files stands for the full disk."""
    process = _setup(tmp_path, limit=20)
    assert process.returncode == 1
    assert "Traceback" not in process.stderr
    assert [name for name in NAMES if (tmp_path / name).exists()] == []
    assert make_secrets(tmp_path) == list(NAMES)


def _setup(folder, limit=resource.RLIM_INFINITY):
    def limit_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    return subprocess.run(
        [sys.executable, "-B", "-m", "config.secrets", str(folder)],
        cwd=ROOT / "backend",
        capture_output=True,
        text=True,
        preexec_fn=limit_files,
    )


def test_empty_token_opens_nothing(settings, client):
    settings.LAB_TOKEN = ""
    for path in ("/lab/settings", "/lab/latency"):
        for headers in ({}, {"X-Lab-Token": ""}):
            assert client.get(path, headers=headers).status_code == 404


needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file to another")


@needs_root
def test_each_reader_gets_only_its_secrets(tmp_path):
    folder, readers = tmp_path / "all", tmp_path / "readers"
    make_secrets(folder)
    for _ in range(2):
        distribute_secrets(folder, readers)
    assert {path.name for path in readers.iterdir()} == set(READERS)
    for name, reader in READERS.items():
        assert {path.name for path in (readers / name).iterdir()} == set(reader.names)
        for path in (readers / name, *(readers / name).iterdir()):
            assert path.stat().st_uid == reader.uid
            assert _mode(path) == (0o700 if path.is_dir() else 0o600)
        for secret in reader.names:
            assert (readers / name / secret).read_text() == (folder / secret).read_text().strip()


@needs_root
def test_existing_folders_become_private(tmp_path):
    """Docker creates the root of a volume with mode 0755."""
    folder, readers = tmp_path / "all", tmp_path / "readers"
    folder.mkdir(mode=0o755)
    for name in READERS:
        (readers / name).mkdir(mode=0o755, parents=True)
    make_secrets(folder)
    distribute_secrets(folder, readers)
    assert {_mode(path) for path in (folder, *readers.iterdir())} == {0o700}


@needs_root
def test_replaced_secret_reaches_its_readers(tmp_path):
    folder, readers = tmp_path / "all", tmp_path / "readers"
    make_secrets(folder)
    distribute_secrets(folder, readers)
    (folder / "lab_token").write_text("another")
    distribute_secrets(folder, readers)
    assert (readers / "backend/lab_token").read_text() == "another"
    assert (readers / "backend/lab_token").stat().st_uid == READERS["backend"].uid


def test_superuser_password_reaches_only_init_and_postgres():
    holders = {name for name, reader in READERS.items() if "postgres_password" in reader.names}
    assert holders == {"init", "postgres"}


@pytest.fixture
def superuser(stack):
    with roles.connect() as connection:
        yield connection
    # pytest-django creates a database with this role.
    stack.sql("postgres", "ALTER ROLE hotel CREATEDB")


def test_pg_stat_statements_contains_no_passwords(superuser):
    superuser.execute("SELECT pg_stat_statements_reset()")
    roles.prepare(superuser)
    texts = [row[0] for row in superuser.execute("SELECT query FROM pg_stat_statements")]
    statements = [text for text in texts if text.startswith("ALTER ROLE") and "PASSWORD" in text]
    assert len(statements) == 2
    assert all("SCRAM-SHA-256$" in text for text in statements)
    for name in ("hotel_password", "monitor_password"):
        assert not [text for text in texts if env.secret(name) in text]


def test_role_of_an_older_version_is_updated(superuser):
    superuser.execute("ALTER ROLE hotel CREATEDB CREATEROLE PASSWORD 'another'")
    roles.prepare(superuser)
    query = "SELECT rolsuper, rolcreatedb, rolcreaterole FROM pg_roles WHERE rolname = 'hotel'"
    assert superuser.execute(query).fetchone() == (False, False, False)
    psycopg.connect(
        host=os.environ["PGHOST"],
        port=os.environ["PGPORT"],
        user="hotel",
        dbname="hotel",
        password=env.secret("hotel_password"),
    ).close()


def test_application_password_does_not_log_in_the_superuser(stack):
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(
            host=os.environ["PGHOST"],
            port=os.environ["PGPORT"],
            user="postgres",
            dbname="postgres",
            password=env.secret("hotel_password"),
        )
