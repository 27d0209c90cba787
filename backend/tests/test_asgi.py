"""By ASGI: what stands around a view takes no thread, and counts as by WSGI."""

import asyncio
import logging
import threading

import pytest
from config import caller, middleware
from config.kinds import Switch
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpResponse
from django.test import AsyncClient, RequestFactory
from ops.middleware import RequestMetrics
from prometheus_client import REGISTRY


def test_no_middleware_is_adapted_to_async(settings, caplog):
    """Django says so where it has to put a thread between."""
    settings.DEBUG = True
    with caplog.at_level(logging.DEBUG, logger="django.request"):
        ASGIHandler()
    assert [r.getMessage() for r in caplog.records if "adapted" in r.getMessage()] == []


@pytest.mark.parametrize(
    "kind", [middleware.Security, middleware.Common, middleware.XFrameOptions, RequestMetrics]
)
def test_a_middleware_stays_in_the_loop(kind):
    threads = []

    class Watched(kind):
        def process_response(self, request, response):
            threads.append(threading.get_ident())
            return super().process_response(request, response) if kind.__bases__ else response

    async def view(_request):
        return HttpResponse()

    async def ask():
        return await Watched(view)(RequestFactory().get("/"))

    assert asyncio.run(ask()).status_code == 200
    assert set(threads) <= {threading.get_ident()}


@pytest.mark.django_db(transaction=True)
def test_a_request_is_counted_and_none_is_left_in_flight(hotel):
    labels = {"route": "hotel_list", "method": "GET", "status": "200"}
    counted = REGISTRY.get_sample_value("lab_http_requests_total", labels) or 0
    assert asyncio.run(AsyncClient().get("/api/hotel/")).status_code == 200
    assert REGISTRY.get_sample_value("lab_http_requests_total", labels) == counted + 1
    assert REGISTRY.get_sample_value("lab_http_requests_in_flight") == 0


@pytest.mark.django_db(transaction=True)
def test_who_waited_too_long_is_refused(hotel, caches):
    caches.on(lab_shed=Switch.ON)
    answer = asyncio.run(AsyncClient().get("/api/hotel/", headers={"X-Request-Start": "1.000"}))
    assert answer.status_code == 503


def test_only_the_labs_token_is_told_who_serves(client, settings):
    assert "X-Lab-Server" not in client.get("/healthz").headers
    assert "X-Lab-Server" not in client.get("/healthz", headers={"X-Lab-Token": "x"}).headers
    told = client.get("/healthz", headers={"X-Lab-Token": settings.LAB_TOKEN})
    # No server calls: these are tests.
    assert told.headers["X-Lab-Server"] == "unknown"


def test_the_caller_is_known_by_its_module():
    assert caller._by_asgi("uvicorn.protocols.http.httptools_impl") == "uvicorn"
    assert caller._by_asgi("gunicorn.asgi.protocol") == "gunicorn-asgi"
    assert caller._by_asgi("hypercorn.asyncio.task") == "unknown (hypercorn.asyncio.task)"
