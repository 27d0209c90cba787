"""Health, readiness, settings and metrics."""

import pytest
from django.conf import settings as django_settings
from prometheus_client import REGISTRY


def test_healthz_is_ok_without_database(api):
    assert api.get("/healthz").json() == {"status": "ok"}


@pytest.mark.django_db
def test_readyz_requires_data(api):
    answer = api.get("/readyz")
    assert answer.status_code == 503
    assert "load_db" in answer.json()["error"]["message"]


@pytest.mark.django_db
def test_readyz_is_ok_with_data(api, hotel):
    assert api.get("/readyz").status_code == 200


@pytest.mark.django_db
def test_settings_require_the_token(api):
    for headers in ({}, {"X-Lab-Token": "wrong"}, {"X-Lab-Token": "ü"}):
        assert api.get("/lab/settings", headers=headers).status_code == 404
    answer = api.get("/lab/settings", headers={"X-Lab-Token": django_settings.LAB_TOKEN})
    assert answer.json()["settings"]["LAB_DETAIL"] == "naive"
    assert answer.json()["debug"] is False
    assert answer.json()["versions"]["django"].startswith("5.2")
    server = answer.json()["server"]
    assert set(server) == {"software", "multithread", "kind", "is_stock", "conn_max_age"}


def test_unknown_method_creates_no_series(api):
    assert api.generic("BREW", "/healthz").status_code == 405
    labels = {"route": "healthz", "method": "BREW", "status": "405"}
    assert REGISTRY.get_sample_value("lab_http_requests_total", labels) is None


def test_unsupported_method_is_405_in_the_error_format(api):
    answer = api.post("/healthz")
    assert answer.json()["error"]["code"] == "method_not_allowed"


@pytest.mark.django_db
def test_requests_are_counted_by_route_not_by_path(api, hotel):
    labels = {"route": "hotel_detail", "method": "GET", "status": "200"}
    before = REGISTRY.get_sample_value("lab_http_requests_total", labels) or 0
    api.get(f"/api/hotel/{hotel.pk}/")
    assert REGISTRY.get_sample_value("lab_http_requests_total", labels) == before + 1


@pytest.mark.django_db
def test_schema_is_valid_and_served(api, capsys):
    from django.core.management import call_command

    call_command("spectacular", "--validate", "--fail-on-warn", "--file", "/dev/null")
    answer = api.get("/api/schema/?format=json")
    assert answer.status_code == 200


@pytest.mark.django_db
def test_swagger_page_and_its_files_are_served_locally(api):
    page = api.get("/api/docs/").content.decode()
    assert "https://" not in page
    script = "/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js"
    assert script in page
    assert api.get(script).status_code == 200


@pytest.mark.django_db
def test_latency_requires_token_and_reports_postgres_auth(api):
    assert api.get("/lab/latency").status_code == 404
    headers = {"X-Lab-Token": django_settings.LAB_TOKEN}
    document = api.get("/lab/latency", headers=headers).json()
    assert document["postgres_auth"] == "scram-sha-256"
    assert min(document["round_trips_ms"]) > 0
    assert document["new_connection_ms"] > 0
