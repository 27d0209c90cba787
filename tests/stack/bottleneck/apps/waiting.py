"""A WSGI app whose requests wait, as WAIT names it; files are in FOLDER, its service is at PORT."""

import fcntl
import gc
import http.client
import multiprocessing
import os
import queue
import re
import socket
import sqlite3
import threading
import time
import traceback
from contextlib import closing, suppress
from pathlib import Path

# About 24 requests a second, if one is served at a time.
STEP_SECONDS = 0.04
RETRY_SECONDS = 0.005
FOLDER = Path(os.environ["FOLDER"])
DATABASE = FOLDER / "app.db"
# 2.4 MB, which Nginx compresses in 50 ms.
_ROW = '{"id": %d, "name": "Suite %d", "price": "%d.00", "capacity": %d},'
PAGE = "\n".join(_ROW % (n, n % 97, n * n % 977, n % 5) for n in range(35_000)).encode()
LARGE = bytes(16_000_000)


class RefusedError(Exception):
    """The service answered with another status."""


def mutex():
    with _mutex:
        time.sleep(STEP_SECONDS)


def semaphore():
    with _permits:
        time.sleep(3 * STEP_SECONDS)


def file_lock():
    with (FOLDER / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        time.sleep(STEP_SECONDS)


def record_lock():
    with (FOLDER / "lock").open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        time.sleep(STEP_SECONDS)


def lock_of_processes():
    with _of_processes:
        time.sleep(STEP_SECONDS)


def polled_lock():
    while not _mutex.acquire(blocking=False):
        time.sleep(RETRY_SECONDS)
    time.sleep(STEP_SECONDS)
    _mutex.release()


def renamed_file():
    """Take turns by renaming a file, as programs on a shared disk do."""
    own = FOLDER / f"turn-{os.getpid()}-{threading.get_ident()}"
    while True:
        with suppress(FileNotFoundError):
            (FOLDER / "turn").rename(own)
            break
        time.sleep(RETRY_SECONDS)
    time.sleep(STEP_SECONDS)
    own.rename(FOLDER / "turn")


def sqlite(seconds=10.0):
    with closing(sqlite3.connect(DATABASE, timeout=seconds, isolation_level=None)) as database:
        database.execute("BEGIN IMMEDIATE")
        database.execute("INSERT INTO visit VALUES (1)")
        time.sleep(STEP_SECONDS)
        database.execute("COMMIT")


def impatient_sqlite():
    sqlite(seconds=0.1)


def service():
    connection = http.client.HTTPConnection("127.0.0.1", int(os.environ["PORT"]), timeout=30)
    with closing(connection):
        _ask(connection)


def unix_service():
    connection = http.client.HTTPConnection("localhost", timeout=30)
    connection.sock = socket.socket(socket.AF_UNIX)
    with closing(connection):
        connection.sock.connect(str(FOLDER / "service"))
        _ask(connection)


def _ask(connection):
    connection.request("GET", "/")
    response = connection.getresponse()
    response.read()
    if response.status == http.client.TOO_MANY_REQUESTS:
        raise RefusedError
    assert response.status == http.client.OK


def small_pool():
    connection = _pool.get()
    service()
    _pool.put(connection)


def child():
    with _mutex:
        _to_child.send(STEP_SECONDS)
        _to_child.recv()


def _serve_parent(pipe):
    while True:
        time.sleep(pipe.recv())
        pipe.send(None)


def name_lookup():
    with suppress(socket.gaierror):
        socket.getaddrinfo("rates.example.", 80)


def blocked_pipe():
    os.write(_pipe, bytes(65_536))


def regular_expression():
    re.match(r"(a+)+$", "a" * 20 + "b")


def garbage():
    gc.collect()


def full_disk():
    with (FOLDER / "disk/visits").open("ab") as file:
        file.write(bytes(65_536))


def sleep():
    time.sleep(2 * STEP_SECONDS)


def answer():
    """Wait for nothing."""


def _cycles(count):
    made = [[] for _ in range(count)]
    for each in made:
        each.append(each)
    return made


_mutex, _permits = threading.Lock(), threading.Semaphore(int(os.environ.get("PERMITS", "3")))
# Of the processes that are forked from this one: gunicorn's --preload.
_of_processes = multiprocessing.get_context("fork").Lock()
_pool = queue.Queue()
for _number in range(2):
    _pool.put(_number)
with closing(sqlite3.connect(DATABASE)) as _database:
    _database.execute("CREATE TABLE IF NOT EXISTS visit (x)")
(FOLDER / "turn").touch()
NAME = os.environ["WAIT"]
WAIT = globals()[NAME]
if NAME == "child":
    _to_child, _parent = multiprocessing.get_context("fork").Pipe()
    multiprocessing.get_context("fork").Process(
        target=_serve_parent, args=(_parent,), daemon=True
    ).start()
if NAME == "blocked_pipe":
    _pipe = os.open(FOLDER / "log", os.O_WRONLY)
if NAME == "garbage":
    _heap = _cycles(300_000)


def app(environ, start_response):
    path, status, body = environ["PATH_INFO"], "200 OK", b"{}"
    try:
        if path == "/large":
            body = LARGE
        elif path != "/healthz":
            WAIT()
            body = PAGE if NAME == "answer" else body
    except RefusedError:
        status = "429 Too Many Requests"
    except (OSError, sqlite3.Error):
        # As Django does; gunicorn takes an OSError for one of the connection.
        traceback.print_exc(file=environ["wsgi.errors"])
        status = "500 Internal Server Error"
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    start_response(status, headers)
    return [body]
