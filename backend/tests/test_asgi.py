"""ASGI: middleware runs without threads, and requests are counted as under WSGI."""

import asyncio
import logging
import os
import sys
import threading
from contextlib import contextmanager

import observability.middleware
import ops.shedding
import pytest
from asgiref.sync import sync_to_async
from config.server import caller
from django.core.handlers.asgi import ASGIHandler
from django.db import connections
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.common import CommonMiddleware
from django.middleware.security import SecurityMiddleware
from django.test import AsyncClient
from lab_settings.kinds import Switch
from observability import metrics
from prometheus_client import REGISTRY

# Above the largest PID of Linux, 2**22.
NO_PID = 10_000_000


def test_no_middleware_is_adapted_to_async(settings, caplog):
    """Django logs each middleware that it has to run in a thread."""
    settings.DEBUG = True
    with caplog.at_level(logging.DEBUG, logger="django.request"):
        ASGIHandler()
    assert [r.getMessage() for r in caplog.records if "adapted" in r.getMessage()] == []


# The function of each middleware that could run in a thread.
WORK = {
    "RequestMetrics": observability.middleware._record,
    "Shedding": ops.shedding._rejection,
    "Security": SecurityMiddleware.process_response,
    "Common, before": CommonMiddleware.process_request,
    "Common, after": CommonMiddleware.process_response,
    "XFrameOptions": XFrameOptionsMiddleware.process_response,
}


@contextmanager
def _threads_of(function):
    """Yield a list that receives the thread id of each call to `function`."""
    threads = []

    def record(frame, event, _argument):
        if event == "call" and frame.f_code is function.__code__:
            threads.append(threading.get_ident())

    threading.setprofile(record)
    sys.setprofile(record)
    try:
        yield threads
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


@pytest.mark.parametrize("name", WORK)
def test_middleware_runs_in_the_event_loop(name):
    with _threads_of(WORK[name]) as threads:
        answer = asyncio.run(AsyncClient().get("/async/workbench/hello/"))
    assert answer.status_code == 200
    assert threads == [threading.get_ident()]


def test_worker_start_tolerates_files_removed_by_another_worker(tmp_path, monkeypatch):
    """Servers have no hook for this: each worker removes the files of earlier workers."""
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    own_file = tmp_path / f"gauge_livesum_{os.getpid()}.db"
    for pid in (os.getpid(), NO_PID, NO_PID + 1):
        (tmp_path / f"gauge_livesum_{pid}.db").touch()
    remove = os.remove

    def remove_twice(path):
        remove(path)
        remove(path)

    monkeypatch.setattr(os, "remove", remove_twice)
    metrics.register_worker()
    assert list(tmp_path.iterdir()) == [own_file]


async def _list(**headers):
    """Return the list, then close the connections, which Django leaves open for its client."""
    try:
        return await AsyncClient().get("/api/hotel/", headers=headers)
    finally:
        await sync_to_async(connections.close_all)()


@pytest.mark.django_db(transaction=True)
def test_request_is_counted_and_in_flight_returns_to_zero(hotel):
    labels = {"route": "hotel_list", "method": "GET", "status": "200"}
    before = REGISTRY.get_sample_value("lab_http_requests_total", labels) or 0
    assert asyncio.run(_list()).status_code == 200
    assert REGISTRY.get_sample_value("lab_http_requests_total", labels) == before + 1
    assert REGISTRY.get_sample_value("lab_http_requests_in_flight") == 0


@pytest.mark.django_db(transaction=True)
def test_request_that_waited_too_long_is_rejected(hotel, caches, monkeypatch):
    caches.on(LAB_SHED=Switch.ON)
    # As in a process that has served requests for a long time.
    monkeypatch.setattr(ops.shedding._queue, "_first_at", float("-inf"))
    assert asyncio.run(_list(**{"X-Request-Start": "1.000"})).status_code == 503


def test_server_name_is_sent_only_with_lab_token(client, settings):
    assert "X-Lab-Server" not in client.get("/healthz").headers
    assert "X-Lab-Server" not in client.get("/healthz", headers={"X-Lab-Token": "x"}).headers
    assert "X-Accel-Expires" not in client.get("/healthz").headers
    answer = client.get("/healthz", headers={"X-Lab-Token": settings.LAB_TOKEN})
    assert answer.headers["X-Accel-Expires"] == "0"
    # The tests run without a server.
    assert answer.headers["X-Lab-Server"] == "unknown"


@pytest.mark.parametrize(
    ("software", "has_threads", "server"),
    [
        ("gunicorn/27.0.1", False, "gunicorn-sync"),
        ("gunicorn/27.0.1", True, "gunicorn-gthread"),
        ("waitress", True, "unknown (waitress)"),
    ],
)
def test_wsgi_environ_identifies_the_server(monkeypatch, software, has_threads, server):
    monkeypatch.setattr(caller, "_servers", [])
    caller.detect_wsgi({"SERVER_SOFTWARE": software, "wsgi.multithread": has_threads})
    assert caller.server() == server


def test_asgi_module_identifies_the_server():
    assert caller._asgi_server("uvicorn.protocols.http.httptools_impl") == "uvicorn"
    assert caller._asgi_server("gunicorn.asgi.protocol") == "gunicorn-asgi"
    assert caller._asgi_server("hypercorn.asyncio.task") == "unknown (hypercorn.asyncio.task)"
