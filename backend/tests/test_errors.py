"""Database failures are a 503 that the client may retry, never a 500."""

import pytest
from config.http import errors
from django.db import OperationalError
from rest_framework.test import APIClient


@pytest.mark.django_db
def test_statement_timeout_is_503_with_retry_after(api, hotel, monkeypatch):
    from django.db import connection
    from hotels import selectors

    def slow():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = '20ms'")
            cursor.execute("SELECT pg_sleep(5)")

    monkeypatch.setattr(selectors, "hotel_list", slow)
    answer = api.get("/api/hotel/")
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == str(errors.RETRY_AFTER_SECONDS)
    assert answer.json()["error"]["code"] == "unavailable"


@pytest.mark.django_db
def test_unavailable_database_makes_readyz_503(api, monkeypatch):
    from hotels.models import Hotel

    def fail():
        raise OperationalError("connection refused")

    monkeypatch.setattr(Hotel.objects, "exists", fail)
    answer = api.get("/readyz")
    assert answer.status_code == 503
    assert "connection refused" in answer.json()["error"]["message"]


@pytest.mark.django_db
def test_unknown_host_is_400_in_the_error_format(api):
    answer = api.get("/api/hotel/", headers={"Host": "evil.example"})
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "bad_request"


@pytest.mark.django_db
@pytest.mark.parametrize("host", ["a b", "[::1", "x" * 300, "evil.example", "\udcff"])
def test_malformed_host_writes_nothing_to_the_log(api, caplog, host):
    assert api.get("/api/hotel/", headers={"Host": host}).status_code == 400
    assert caplog.records == []


@pytest.mark.django_db
def test_lab_settings_without_a_database_are_503(api, monkeypatch, settings):
    from ops import apis

    def fail():
        raise OperationalError("connection refused")

    monkeypatch.setattr(apis, "_versions", fail)
    answer = api.get("/lab/settings", headers={"X-Lab-Token": settings.LAB_TOKEN})
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "unavailable"


@pytest.mark.django_db
def test_unhandled_exception_is_500_in_the_error_format(hotel, monkeypatch):
    from hotels import selectors

    monkeypatch.setattr(selectors, "hotel_list", lambda: 1 / 0)
    answer = APIClient(raise_request_exception=False).get("/api/hotel/")
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "server_error"
