"""A WSGI app that writes for each request: a row into SQLite, or a line into a file."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

_BYTES = 8000


def write_row(place: str) -> None:
    with closing(sqlite3.connect(place, timeout=0.05)) as database, database:
        database.execute("CREATE TABLE IF NOT EXISTS item (name, content)")
        database.execute("INSERT INTO item VALUES ('john.smith', ?)", ("x" * _BYTES,))


def write_line(place: str) -> None:
    with Path(place).open("a") as file:
        file.write("x" * _BYTES + "\n")


_WRITERS = {"row": write_row, "line": write_line}


def application(environ, start_response):
    _WRITERS[os.environ["WRITES"]](os.environ["PLACE"])
    body = b'{"id": 1}'
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    start_response("200 OK", headers)
    return [body]
