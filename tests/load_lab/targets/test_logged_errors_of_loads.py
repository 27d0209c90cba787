"""Errors that only the app's log explains, under load."""

import json
import sqlite3
import sys
import threading
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from load_lab.paths import ROOT, project
from load_lab.stack.native.supervision import wait_for
from tests.support.little_disk import little_disk
from tests.support.ports import free_port

APP = ROOT / "tests/support/writing_app"
LINE = '127.0.0.1 - - [24/Nov/2026:10:00:00 +0000] "GET {} HTTP/1.1" 200 9 "-" "-"\n'
RAMP = ("--rate", "40", "--duration", "25s", "--no-early-stop", "--p95", "20s", "--json")
TARGET = """
url = "http://127.0.0.1:{port}"
ready = "/ready/"
[start]
folder = "{app}"
command = ["{gunicorn}", "--workers", "2", "--bind", "127.0.0.1:{port}", "app:application"]
env = {{ WRITES = "{writes}", PLACE = "{place}" }}
"""
# Of a busy machine, which its own tests judge.
BUSY = ("others", "generator_cpu")
FULL = pytest.mark.full


@contextmanager
def locked_database(folder):
    """Lock the app's database once it has a hundred rows."""

    def lock():
        with closing(sqlite3.connect(folder / "items", timeout=5)) as database:
            wait_for(lambda: _rows(database) > 100, seconds=60, what="a hundred rows")
            database.execute("BEGIN EXCLUSIVE")
            done.wait()

    done, locking = threading.Event(), threading.Thread(target=lock)
    locking.start()
    try:
        yield folder
    finally:
        done.set()
        locking.join()


def _rows(database):
    try:
        return database.execute("SELECT count(*) FROM item").fetchone()[0]
    except sqlite3.OperationalError:
        # The app makes the table, and may have it locked.
        return 0


CASES = {
    "SQLite that another process locks": (
        *("row", locked_database, "SQLite's write lock"),
        "the app's log has sqlite3.OperationalError (database is locked) ",
    ),
    "SQLite on a full disk": pytest.param(
        *("row", little_disk, "a full disk"),
        "the app's log has sqlite3.OperationalError (database or disk is full) ",
        marks=FULL,
    ),
    "files on a full disk": pytest.param(
        *("line", little_disk, "a full disk"),
        "the app's log has OSError (errno 28: No space left on device) ",
        marks=FULL,
    ),
}


@pytest.mark.parametrize(("writes", "disturb", "cause", "evidence"), CASES.values(), ids=CASES)
def test_cause_in_the_log_of_an_app_is_named(
    lab, stack, tmp_path, writes, disturb, cause, evidence
):
    folder, path, log = tmp_path / "place", tmp_path / "items.toml", tmp_path / "access.log"
    folder.mkdir()
    gunicorn = Path(sys.executable).parent / "gunicorn"
    values = {"port": free_port(), "app": APP, "gunicorn": gunicorn, "writes": writes}
    path.write_text(TARGET.format(**values, place=folder / "items"))
    log.write_text("".join(LINE.format(each) for each in ("/items/", "/items/7/")))
    made = lab("mix", "make", str(path), "--log", str(log))
    assert made.code == 0, made.err
    with disturb(folder):
        run = lab("k6", "breakpoint", "--target", str(path), *RAMP)
    assert run.code == 0, run.err
    document = run.json
    assert document["outcome"] == "broke", document["verdict"]
    if document["limited_by"] not in BUSY:
        found = document["bottleneck"]
        assert (found["cause"], found["certainty"]) == (cause, "likely"), found
        assert found["evidence"][0].startswith(evidence)
        assert f"; {document['failed']:,} requests failed" in found["evidence"][0]
    logged = document["logged_errors"]["errors"][0]
    assert logged["source"] == "server"
    assert 0.5 * document["failed"] <= logged["count"] <= document["failed"]
    stored = [
        each for each in (project().results / document["testid"]).rglob("*") if each.is_file()
    ]
    assert stored
    assert not [each for each in stored if b"john.smith" in each.read_bytes()]
    assert "john.smith" not in json.dumps(document)
