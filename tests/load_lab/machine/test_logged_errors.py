"""The facts that are taken from logs, and what must not be."""

import json
import logging
import sqlite3
import subprocess
import sys
from dataclasses import astuple

import psycopg
import pytest

from load_lab.machine.logged_errors import LoggedError, logged_errors

FRAMES = (
    'Traceback (most recent call last):\n  File "/srv/app/views.py", line 12, in get\n    ask()\n'
)
CAUSE = "\nThe above exception was the direct cause of the following exception:\n\n"
DURING = "\nDuring handling of the above exception, another exception occurred:\n\n"
# What no output may have.
SECRETS = ("smith", "Smith", "4711", "hunter2", "@", "Baker Street")


def _read(source, text):
    data = text if isinstance(text, bytes) else text.encode()
    return logged_errors([(source, data.split(b"\n"))])


def _facts(source, text):
    return {astuple(error)[1:4]: error.count for error in _read(source, text).errors}


LAST_LINES = {
    "errno 28": (
        "OSError: [Errno 28] No space left on device: '/home/smith/4711.pdf'",
        ("OSError", "errno 28", "No space left on device"),
    ),
    "errno 24": (
        "OSError: [Errno 24] Too many open files: 'smith.csv'",
        ("OSError", "errno 24", "Too many open files"),
    ),
    "errno 30": (
        "OSError: [Errno 30] Read-only file system: '/srv/smith'",
        ("OSError", "errno 30", "Read-only file system"),
    ),
    "errno by the class": (
        "ConnectionRefusedError",
        ("ConnectionRefusedError", "errno 111", "Connection refused"),
    ),
    "a class alone": ("KeyError: 'john.smith@example.org'", ("KeyError", "", "")),
    "a class with a module": (
        "shop.errors.CardDeclined: card 4711 of John Smith",
        ("shop.errors.CardDeclined", "", ""),
    ),
    "a class in a function": ("shop.f.<locals>.Odd: Smith", ("shop.f.Odd", "", "")),
    "a class in lower case": ("socket.timeout: smith", ("socket.timeout", "", "")),
    "a host that is unknown": (
        "socket.gaierror: [Errno -2] Name or service not known",
        ("socket.gaierror", "gaierror", ""),
    ),
    "SQLite": (
        "sqlite3.OperationalError: database is locked",
        ("sqlite3.OperationalError", "", "database is locked"),
    ),
    "SQLite, behind SQLAlchemy": (
        "sqlalchemy.exc.OperationalError: (sqlite3.OperationalError) database is locked",
        ("sqlalchemy.exc.OperationalError", "", "database is locked"),
    ),
    "another message of SQLite": (
        "sqlite3.IntegrityError: UNIQUE constraint failed: smith",
        ("sqlite3.IntegrityError", "", ""),
    ),
    "psycopg": (
        'psycopg.errors.DiskFull: could not extend file "base/4711"',
        ("psycopg.errors.DiskFull", "53100", ""),
    ),
    "psycopg2": (
        "psycopg2.errors.DeadlockDetected: deadlock detected",
        ("psycopg2.errors.DeadlockDetected", "40P01", ""),
    ),
    "asyncpg": (
        "asyncpg.exceptions.TooManyConnectionsError: sorry, smith",
        ("asyncpg.exceptions.TooManyConnectionsError", "53300", ""),
    ),
    "psycopg's connections": (
        'psycopg.OperationalError: connection failed: connection to server at "10.0.0.4711", port '
        "5432 failed: FATAL:  sorry, too many clients already",
        ("psycopg.OperationalError", "53300", "sorry, too many clients already"),
    ),
    "MySQL": (
        "MySQLdb.OperationalError: (1205, 'Lock wait timeout exceeded; smith')",
        ("MySQLdb.OperationalError", "MySQL 1205", ""),
    ),
    "Redis": (
        "redis.exceptions.OutOfMemoryError: command not allowed when used memory > 'maxmemory'.",
        ("redis.exceptions.OutOfMemoryError", "Redis OOM", ""),
    ),
    "Redis's disk": (
        "redis.exceptions.ResponseError: MISCONF Redis is configured to save smith",
        ("redis.exceptions.ResponseError", "Redis MISCONF", "MISCONF"),
    ),
    "a service that writes a message like an errno": (
        "requests.exceptions.HTTPError: John Smith [Errno 28]",
        ("requests.exceptions.HTTPError", "", ""),
    ),
}


@pytest.mark.parametrize(("line", "fact"), LAST_LINES.values(), ids=LAST_LINES)
def test_last_line_of_a_traceback_becomes_a_fact(line, fact):
    found = _read("server", FRAMES + line + "\n")
    assert [astuple(error)[1:] for error in found.errors] == [(*fact, 1)]
    assert not any(secret in repr(found) for secret in SECRETS)


DOOR = "sqlite3.OperationalError: database is locked\n"
DJANGO = "django.db.utils.OperationalError: database is locked\n"
LOCKED = ("sqlite3.OperationalError", "", "database is locked")
FULL = ("OSError", "errno 28", "No space left on device")
NO_SPACE = "OSError: [Errno 28] No space left on device\n"
LOGS = {
    "an exception and its cause count once": (
        FRAMES + DOOR + CAUSE + FRAMES + DJANGO,
        {LOCKED: 1},
    ),
    "a cause that tells nothing": (
        FRAMES + "KeyError: 'smith'\n" + DURING + FRAMES + NO_SPACE,
        {FULL: 1},
    ),
    "two causes that tell something": (
        FRAMES + DOOR + DURING + FRAMES + NO_SPACE,
        {LOCKED: 1, FULL: 1},
    ),
    "a chain that tells nothing": (
        FRAMES
        + "KeyError: 'smith'\n"
        + DURING
        + FRAMES
        + "ValueError\n"
        + DURING
        + FRAMES
        + "shop.Odd: smith\n",
        {("KeyError", "", ""): 1, ("shop.Odd", "", ""): 1},
    ),
    "two requests": (FRAMES + DOOR + FRAMES + DOOR, {LOCKED: 2}),
    "two processes whose lines are mixed": (
        FRAMES + FRAMES + "127.0.0.1 - - smith\n" + DOOR + "  more()\n" + NO_SPACE,
        {LOCKED: 1, FULL: 1},
    ),
    "lines that only look like exceptions": (
        "john.Smith: hello\n" + FRAMES + DOOR + "john.Smith: hello\nSmith: hello\n",
        {LOCKED: 1},
    ),
    "words in front of the end of a traceback": (
        FRAMES + "smith: hello\nSmith: hello\nHello smith\n    ValueError: 1,\n" + DOOR,
        {LOCKED: 1},
    ),
    "a request that asks for a traceback": (
        'GET /?q=sqlite3.OperationalError:%20database%20is%20locked "smith"\n',
        {},
    ),
    "a traceback without an end": (FRAMES, {}),
    "an end without a traceback": (DOOR, {}),
    "lines in an unknown encoding": (
        b"\xff\xfe smith \x80\n" + FRAMES.encode() + b"\xe9: \xff\n" + DOOR.encode(),
        {LOCKED: 1},
    ),
    "Windows's ends of lines": ((FRAMES + DOOR).replace("\n", "\r\n"), {LOCKED: 1}),
    "compose's services": (
        "".join(
            f"{name}  | {line}\n"
            for line in (FRAMES + DOOR).splitlines()
            for name in ("web-1", "web-2")
        ),
        {LOCKED: 2},
    ),
    "honcho": (
        "".join(f"12:00:00 web.1  | {line}\n" for line in (FRAMES + DOOR).splitlines()),
        {LOCKED: 1},
    ),
    "JSON": (json.dumps({"exc_info": FRAMES + DOOR.strip(), "user": "smith"}) + "\n", {LOCKED: 1}),
    "a message of several lines": (
        FRAMES + "psycopg.errors.UniqueViolation: duplicate key\n"
        "DETAIL:  Key (email)=(smith@example.org) already exists.\nSmith.Error: hunter2\n",
        {("psycopg.errors.UniqueViolation", "23505", ""): 1},
    ),
}


@pytest.mark.parametrize(("text", "facts"), LOGS.values(), ids=LOGS)
def test_tracebacks_of_a_log_are_counted(text, facts):
    assert _facts("server", text) == facts
    assert not any(secret in repr(_read("server", text)) for secret in SECRETS)


def test_exceptions_that_python_prints(tmp_path):
    database = tmp_path / "smith.db"
    with sqlite3.connect(database) as holder:
        holder.execute("CREATE TABLE item (name)")
        holder.execute("INSERT INTO item VALUES ('smith')")
        printed = _printed(
            "import sqlite3\n"
            "def write(name):\n"
            "    try:\n"
            "        with sqlite3.connect(name, timeout=0) as d: d.execute('DELETE FROM item')\n"
            "    except sqlite3.Error as error:\n"
            "        raise RuntimeError(f'{name} of smith') from error\n",
            f"write({str(database)!r})",
        )
    assert _facts("server", printed) == {LOCKED: 1}


PRINTED = {
    "a group": (
        "import asyncio\n"
        "async def fail(error): raise error\n"
        "async def run():\n"
        "    async with asyncio.TaskGroup() as tasks:\n"
        "        tasks.create_task(fail(OSError(28, 'smith')))\n"
        "        tasks.create_task(fail(KeyError('smith')))\n"
        "asyncio.run(run())",
        {FULL: 1, ("KeyError", "", ""): 1},
    ),
    "a note": ("e = OSError(28, 'x'); e.add_note('Smith.Error: hunter2'); raise e", {FULL: 1}),
    "no such file": (
        "open('/smith')",
        {("FileNotFoundError", "errno 2", "No such file or directory"): 1},
    ),
    "a recursion": ("f = lambda: f()\nf()", {("RecursionError", "", ""): 1}),
    "a class of the main module": (
        "class Odd(Exception): pass\nraise Odd('smith')",
        {},
    ),
}


@pytest.mark.parametrize(("code", "facts"), PRINTED.values(), ids=PRINTED)
def test_exception_that_python_prints(code, facts):
    assert _facts("server", _printed(code)) == facts


def _printed(*code):
    argv = [sys.executable, "-c", "\n".join(code)]
    return subprocess.run(argv, capture_output=True, check=False).stderr


def test_exception_that_logging_prints(tmp_path):
    log = tmp_path / "app.log"
    handler = logging.FileHandler(log)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.Logger("shop")
    logger.addHandler(handler)
    for _ in range(3):
        try:
            raise psycopg.errors.LockNotAvailable("smith")
        except psycopg.Error:
            logger.exception("Internal Server Error: /users/smith/?password=hunter2")
    handler.close()
    assert "hunter2" in log.read_text()
    found = _read("server", log.read_bytes())
    assert found.errors == (
        LoggedError("server", "psycopg.errors.LockNotAvailable", "55P03", "", 3),
    )


HEAD = "2026-11-28 11:30:00.123 UTC [4711] {} "
OF_POSTGRES = {
    "a full disk": (
        ("53100", 'ERROR:  could not extend file "base/4711/smith": No space left on device'),
        ("DiskFull", "53100", "could not extend file …: No space left on device"),
    ),
    "quotes in quotes": (
        ("53100", 'FATAL:  could not write "a "smith" b" of "4711": No space left'),
        ("DiskFull", "53100", "could not write …: No space left"),
    ),
    "a quote without an end": (
        ("57014", "ERROR:  canceling 'smith Baker Street"),
        ("QueryCanceled", "57014", "canceling …"),
    ),
    "other quotes": (
        ("53300", "FATAL:  role “smith” and «Smith» wait"),
        ("TooManyConnections", "53300", "role … wait"),
    ),
    "numbers and addresses": (
        ("58030", "PANIC:  could not read block 4711 in 0/4711AB for smith@example.org now"),
        ("IoError", "58030", "could not read block … in …/… for … now"),
    ),
    "a deadlock": (
        ("40P01", "ERROR:  deadlock detected"),
        ("DeadlockDetected", "40P01", "deadlock detected"),
    ),
    "a time limit": (
        ("55P03", "ERROR:  canceling statement due to lock timeout"),
        ("LockNotAvailable", "55P03", "canceling statement due to lock timeout"),
    ),
    "a value": (
        ("22P02", "ERROR:  invalid input syntax for type integer: smith"),
        ("InvalidTextRepresentation", "22P02", ""),
    ),
    "a text of RAISE": (
        ("P0001", "ERROR:  John Smith of Baker Street has no room"),
        ("RaiseException", "P0001", ""),
    ),
    "a unique name": (
        ("23505", 'ERROR:  duplicate key value violates unique constraint "smith"'),
        ("UniqueViolation", "23505", ""),
    ),
    "an unknown state": (("ZX123", "ERROR:  smith"), ("error", "ZX123", "")),
}
NOT_READ = (
    HEAD.format("53100") + "DETAIL:  Key (email)=(smith@example.org) already exists.\n"
    + HEAD.format("53100") + "HINT:  smith\n"
    + HEAD.format("53100") + "CONTEXT:  PL/pgSQL function smith()\n"
    + HEAD.format("53100") + "STATEMENT:  INSERT INTO users VALUES ('smith',\n"
    + "\t" + HEAD.format("53100") + "ERROR:  smith')\n"
    + HEAD.format("00000") + "LOG:  process 4711 still waiting for smith\n"
    + FRAMES + DOOR
)  # fmt: skip


@pytest.mark.parametrize(("said", "fact"), OF_POSTGRES.values(), ids=OF_POSTGRES)
def test_error_of_postgres_becomes_a_fact(said, fact):
    state, text = said
    found = _read("postgres", HEAD.format(state) + text + "\n" + NOT_READ)
    assert [astuple(error) for error in found.errors] == [("postgres", *fact, 1)]
    assert not any(secret in repr(found) for secret in SECRETS)


def test_most_frequent_errors_come_first_and_the_others_are_counted():
    lines = "".join((FRAMES + f"shop.Error{n}: smith\n") * (n + 1) for n in range(12))
    found = _read("server", lines)
    assert [error.count for error in found.errors] == [12, 11, 10, 9, 8, 7, 6, 5]
    assert found.left_out == 4


def test_classes_without_number_take_no_memory():
    lines = "".join(FRAMES + f"shop.Error{n}\n" for n in range(5000))
    found = _read("server", lines)
    assert len(found.errors) == 8
    assert found.left_out == 1992
