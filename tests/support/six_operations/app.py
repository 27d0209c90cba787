"""A shop of six operations, of which one may have a fault; it writes its CPU time to a file.

FAULT `statements`: a statement for each line of an order (GET /orders/). `function`: a slow one in
GET /report/. TIMES is the file: CPU seconds of this process, and of some of its functions.
"""

import json
import os
import time
from collections import Counter
from functools import cache

import psycopg

FAULT = os.environ.get("FAULT", "")
SCHEMA = """
CREATE TABLE item (id int PRIMARY KEY, name text);
CREATE TABLE line (purchase int, item int, price int);
INSERT INTO item SELECT n, 'item ' || n FROM generate_series(1, 500) AS n;
INSERT INTO line SELECT n % 20, 1 + n % 500, n FROM generate_series(1, 4000) AS n;
CREATE INDEX ON line (purchase);
"""
_seconds = Counter()


@cache
def _file():
    return os.open(os.environ["TIMES"], os.O_WRONLY | os.O_CREAT, 0o644)


@cache
def _connection():
    return psycopg.connect(os.environ["DATABASE"], autocommit=True)


def timed(function):
    """Add the thread's CPU time in the function."""

    def measured(*arguments):
        started = time.thread_time()
        try:
            return function(*arguments)
        finally:
            _seconds[function.__name__] += time.thread_time() - started

    return measured


def rows(statement, *parameters):
    return _connection().execute(statement, parameters).fetchall()


def items():
    return rows("SELECT id, name FROM item ORDER BY id LIMIT 20")


def item():
    return rows("SELECT id, name FROM item WHERE id = %s", 7)


def search():
    return rows("SELECT id FROM item WHERE name LIKE %s", "item 4%")


def lines_of(purchase):
    return rows("SELECT item, price FROM line WHERE purchase = %s", purchase)


@timed
def names_of(lines):
    if FAULT == "statements":
        return [rows("SELECT name FROM item WHERE id = %s", item)[0][0] for item, _ in lines]
    found = dict(rows("SELECT id, name FROM item WHERE id = ANY(%s)", [item for item, _ in lines]))
    return [found[item] for item, _ in lines]


@timed
def with_prices(names):
    text = json.dumps([{"name": name, "price": len(name)} for name in names * 20])
    return json.loads(text)[: len(names)]


def orders():
    return with_prices(names_of(lines_of(3)))


@timed
def with_taxes(count):
    total = 0
    for number in range(count):
        total = (total * 31 + number) % 1_000_003
    return total


@timed
def layout(count):
    return sorted(str(number)[::-1] for number in range(count))[:3]


def report():
    slow = FAULT == "function"
    return [with_taxes(300_000 if slow else 3_000), layout(20_000 if slow else 200)]


def health():
    return "ok"


OPERATIONS = {f"/{each.__name__}/": each for each in (items, item, search, orders, report, health)}


def application(environ, start_response):
    content = OPERATIONS[environ["PATH_INFO"]]()
    body = json.dumps(content).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    times = {**_seconds, "all": time.process_time()}
    os.pwrite(_file(), json.dumps(times).ljust(400).encode(), 0)
    return [body]
