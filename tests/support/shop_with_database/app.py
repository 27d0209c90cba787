"""An app of one route that computes (TURNS) and asks its database (STATEMENTS times). Every LEAK
requests, memory, a file, a thread and a connection are lost.
"""

import json
import os
import threading

import psycopg

from tests.support.burning import burning, compute

TURNS, STATEMENTS, LEAK = (int(os.environ.get(name, 0)) for name in ("TURNS", "STATEMENTS", "LEAK"))
_lost: list[object] = []
_answered = 0
_connections: list[psycopg.Connection] = []


def shop(environ, start_response):
    if not _connections:
        _connections.append(psycopg.connect(os.environ["DATABASE"], autocommit=True))
    compute(TURNS)
    for _ in range(STATEMENTS):
        _connections[0].execute("SELECT sum(n) FROM generate_series(1, 4000) AS n").fetchone()
    if LEAK:
        _leak()
    host = environ["HTTP_HOST"]
    body = json.dumps({"link": f"http://{host}/items/", "extra": "x" * _extra()}).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


def _leak() -> None:
    global _answered
    _answered += 1
    if _answered % LEAK == 0:
        _lost.extend((os.urandom(300_000), os.dup(0)))
        _lost.append(psycopg.connect(os.environ["DATABASE"], autocommit=True))
        threading.Thread(target=threading.Event().wait, daemon=True).start()


def _extra() -> int:
    """Return how many bytes more this variant answers."""
    return int(os.environ.get("EXTRA", "0"))


application = burning(shop)
