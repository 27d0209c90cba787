"""The API's guarantees hold for stock Django, which the default settings (naive) run."""

from contextlib import contextmanager
from uuid import uuid4

import httpx
import pytest
from lab_settings.kinds import Server

from load_lab.settings import update_settings
from load_lab.stack.native.supervision import wait_for
from load_lab.stack.reported import query_backend

LIST = "/api/hotel/"


def _declared(server):
    return pytest.param(server, marks=pytest.mark.settings(f"LAB_SERVER={server}"))


@pytest.fixture(scope="module", params=map(_declared, [Server.GUNICORN_SYNC, Server.UVICORN]))
def settings(stack, request):
    return stack.settings()


@pytest.fixture
def client(settings):
    with httpx.Client(base_url=settings.target_url, timeout=30) as client:
        yield client


@pytest.fixture
def booking(stack):
    (suite,) = stack.sql("hotel", "SELECT id FROM hotels_suite ORDER BY random() LIMIT 1")
    (customer,) = stack.sql("hotel", "SELECT id FROM hotels_customer LIMIT 1")
    nights = {"check_in": "2990-01-01", "check_out": "2990-01-02"}
    yield {"suite": suite, "customers": [customer], **nights}
    query = "SELECT id FROM hotels_booking WHERE check_in = '2990-01-01'"
    stack.sql("hotel", f"DELETE FROM hotels_booking_customers WHERE booking_id IN ({query})")
    stack.sql("hotel", f"DELETE FROM hotels_booking WHERE id IN ({query})")


@contextmanager
def _outage(stack, service):
    stack._supervision.stop_service(service)
    try:
        yield
    finally:
        stack._supervision.start_service(service)


def test_django_is_stock_until_a_part_is_fast(stack, settings):
    assert query_backend(settings, stack.token())["server"]["is_stock"] is True
    stack.apply(update_settings(settings, ["LAB_DETAIL=fast"]))
    assert query_backend(stack.settings(), stack.token())["server"]["is_stock"] is False


def test_page_has_no_etag_and_unknown_page_returns_404(client):
    page = client.get(LIST)
    assert (page.status_code, "ETag" in page.headers) == (200, False)
    assert client.get(f"{LIST}{uuid4()}/").status_code == 404


def test_repeated_booking_is_replayed_and_conflicting_booking_rejected(client, booking):
    key = {"Idempotency-Key": uuid4().hex}
    first = client.post("/api/booking/", json=booking, headers=key)
    second = client.post("/api/booking/", json=booking, headers=key)
    assert (first.status_code, second.status_code) == (201, 201)
    assert second.json() == first.json()
    assert second.headers["Idempotency-Replayed"] == "true"
    other = {"Idempotency-Key": uuid4().hex}
    assert client.post("/api/booking/", json=booking, headers=other).status_code == 409
    changed_booking = {**booking, "check_out": "2990-01-03"}
    assert client.post("/api/booking/", json=changed_booking, headers=key).status_code == 422


@pytest.mark.parametrize("parameter", ["charset=rot13", "x*=none'en'y", "charset*=utf-8''%00"])
def test_malformed_content_type_causes_no_server_error(client, parameter):
    headers = {"Content-Type": f"application/json; {parameter}"}
    response = client.post("/api/booking/", content=b"{}", headers=headers)
    assert (response.status_code, response.json()["error"]["code"]) == (400, "invalid")


def test_postgres_outage_returns_503_until_recovery(stack, client, booking):
    """After recovery, lost persistent connections cause no errors."""
    assert client.get(LIST).status_code == 200
    with _outage(stack, "postgres"):
        for response in (client.get(LIST), client.post("/api/booking/", json=booking)):
            assert response.status_code == 503
            assert response.json()["error"]["code"] == "unavailable"
            assert response.headers["Retry-After"] == "1"
    wait_for(lambda: client.get(LIST).status_code == 200, seconds=10, what="the API")
    statuses = {client.get(LIST).status_code for _ in range(10)}
    assert statuses == {200}
    assert client.post("/api/booking/", json=booking).status_code == 201
