"""LAB_LATENCY_MS with the real Toxiproxy: which connections are delayed, and by how much."""

import httpx
import pytest

from load_lab.errors import LabError, UsageError
from load_lab.settings import load_settings, update_settings
from load_lab.stack import latency
from load_lab.stack.native import latency as native_latency

MS = 60


# Delays the backend's outgoing traffic.
delayed = pytest.mark.settings(f"LAB_LATENCY_MS={MS}")


def _proxies(stack):
    return httpx.get(f"http://127.0.0.1:{stack.settings().LAB_TOXIPROXY_PORT}/proxies").json()


def _streams(stack):
    return {
        name: [(toxic["stream"], toxic["attributes"]["latency"]) for toxic in proxy["toxics"]]
        for name, proxy in _proxies(stack).items()
    }


def test_connections_bypass_toxiproxy_without_a_delay(stack):
    settings = stack.settings()
    assert _proxies(stack) == {}
    assert settings.server_url == settings.backend_url
    report = latency.verify(settings, stack.token())
    assert report["postgres_auth"] == "scram-sha-256"
    assert report["new_connection_delays"] is None


@delayed
def test_outgoing_backend_traffic_is_delayed_once_per_path(stack):
    report = latency.verify(stack.settings(), stack.token())
    assert report["database_ms"] >= MS
    assert report["client_ms"] >= MS > report["direct_ms"]
    # SSL request, startup, two SCRAM messages, and Django's time zone.
    assert report["new_connection_delays"] == pytest.approx(5, abs=1)
    assert _streams(stack) == {"postgres": [("upstream", MS)], "backend": [("downstream", MS)]}


@delayed
def test_status_and_nginx_report_the_delay(lab, stack):
    status = lab("status", "--json").json
    assert status["settings"]["LAB_LATENCY_MS"] == str(MS)
    assert status["latency"]["database_ms"] >= MS
    settings = httpx.get(f"{stack.settings().nginx_status_url}/settings").json()
    assert settings["LAB_LATENCY_MS"] == str(MS)


@delayed
def test_response_through_nginx_includes_every_delay(stack):
    response = httpx.get(f"{stack.settings().target_url}/api/hotel/")
    # One delay to the client and two to Postgres: for the rows and for the connection check.
    assert response.elapsed.total_seconds() * 1000 >= 3 * MS


@delayed
def test_incoming_direction_delays_the_opposite_streams(stack):
    settings = stack.settings()
    # Not with `lab set`, which would restart the workers twice.
    other = update_settings(settings, ["LAB_LATENCY_DIRECTION=incoming"])
    native_latency.apply(other, stack._state)
    try:
        assert _streams(stack) == {"postgres": [("downstream", MS)], "backend": [("upstream", MS)]}
        latency.verify(settings, stack.token())
    finally:
        native_latency.apply(settings, stack._state)


@delayed
def test_missing_delay_is_detected(stack):
    settings = stack.settings()
    toxics = f"http://127.0.0.1:{settings.LAB_TOXIPROXY_PORT}/proxies/postgres/toxics"
    httpx.delete(f"{toxics}/delay").raise_for_status()
    with pytest.raises(LabError, match=r"Postgres, .* answers after .* make it 60 to 92 ms"):
        latency.verify(settings, stack.token())
    stack.up(settings)
    latency.verify(settings, stack.token())


@delayed
def test_stopped_toxiproxy_is_reported_and_restored_by_up(stack):
    settings = stack.settings()
    stack._supervision.stop_service("toxiproxy")
    with pytest.raises(LabError, match=r"lab/latency answers 503: .*database"):
        latency.verify(settings, stack.token())
    with pytest.raises(LabError, match=r"Toxiproxy is unreachable at .*lab logs toxiproxy"):
        stack.apply(settings.model_copy(update={"LAB_LATENCY_MS": MS + 1}))
    assert stack.settings() == settings
    stack.up(settings)
    latency.verify(settings, stack.token())


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"LAB_LATENCY_MS": "833"}, "up to 6 delays, more than LAB_DB_CONNECT_TIMEOUT=5"),
        ({"LAB_LATENCY_MS": "50", "LAB_SECOND_SERVER": "daphne"}, "delays only LAB_SERVER"),
    ],
)
def test_conflicting_delay_settings_are_rejected(environ, message):
    with pytest.raises(UsageError, match=message):
        load_settings(environ)


def test_longer_timeout_allows_longer_delay():
    longer = {"LAB_LATENCY_MS": "1000", "LAB_DB_CONNECT_TIMEOUT": "10"}
    assert load_settings(longer).LAB_LATENCY_MS == 1000


@pytest.mark.parametrize(("method", "delays"), [("trust", 3), ("md5", 4)])
@delayed
def test_connection_delays_depend_on_authentication_method(stack, login, method, delays):
    login(method)
    report = latency.verify(stack.settings(), stack.token())
    assert report["postgres_auth"] == method
    assert report["new_connection_delays"] == pytest.approx(delays, abs=0.9)


@pytest.fixture
def login(stack):
    """Change Postgres's authentication method for the backend; restore it afterwards."""
    rules, name = stack._state.postgres / "pg_hba.conf", "hotel"
    before, password = rules.read_text(), stack._state.secret("hotel_password")

    def use(method, encryption="md5"):
        rules.write_text(f"host {name} {name} 127.0.0.1/32 {method}\n{before}")
        _set_password(stack, password.strip(), encryption)

    yield use
    rules.write_text(before)
    _set_password(stack, password.strip(), "scram-sha-256")


def _set_password(stack, password, encryption):
    alter = f"ALTER ROLE hotel PASSWORD '{password}'"
    stack.sql(
        "postgres", f"SET password_encryption = '{encryption}'", alter, "SELECT pg_reload_conf()"
    )
