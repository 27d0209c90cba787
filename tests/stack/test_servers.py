"""Every server of LAB_SERVER starts, reports its name, serves, books and can be replaced."""

import json
from contextlib import contextmanager

import httpx
import psutil
import pytest
from lab_settings.kinds import Server
from websockets.sync.client import connect

from load_lab.errors import LabError
from load_lab.settings import update_settings
from load_lab.stack.native.supervision import is_alive, wait_for
from load_lab.targets.reference import verify
from tests.support.booking_load import Load

UNKNOWN_PATH = "/there-is-no-such-route/"

# Further settings to test with each server: one change of settings, which takes seconds, covers
# both. None is a default.
EXTRA_SETTINGS = {
    "gunicorn-sync": {"LAB_SECOND_SERVER": "uvicorn"},
    "gunicorn-gthread": {"LAB_SECOND_SERVER": "daphne"},
    "gunicorn-uvicorn": {"LAB_SECOND_SERVER": "granian", "LAB_WEBSOCKETS": "on"},
    "gunicorn-asgi": {"LAB_WEBSOCKETS": "on"},
    "uvicorn": {"LAB_DB_MAX_CONNECTIONS": "61", "LAB_WEBSOCKETS": "on"},
    "daphne": {"LAB_WEBSOCKETS": "on", "LAB_WORKERS": 1},
    "granian": {"LAB_WEBSOCKETS": "on"},
}
# Not Gunicorn, whose workers detect a dead master only at their next check (LAB_TIMEOUT / 2).
KILLABLE = ("uvicorn", "daphne", "granian")


def _changed_settings(stack, **values):
    base = {"LAB_SECOND_SERVER": "off", "LAB_DB_MAX_CONNECTIONS": "100", "LAB_WEBSOCKETS": "off"}
    base["LAB_WORKERS"] = "2"
    assignments = base | values
    return update_settings(
        stack.settings(), [f"{name}={value}" for name, value in assignments.items()]
    )


def _server_name(stack, url, *, path=UNKNOWN_PATH, token=True):
    headers = {"X-Lab-Token": stack.token()} if token else {}
    return httpx.get(f"{url}{path}", headers=headers, timeout=30).headers.get("X-Lab-Server")


def test_every_server_is_covered():
    assert set(EXTRA_SETTINGS) == set(Server)


# One of each kind before a merge: sync, with a second server, and ASGI with WebSockets.
EACH_KIND = ("gunicorn-sync", "uvicorn")


def _marked(server):
    return pytest.param(server, marks=() if server in EACH_KIND else pytest.mark.full)


@pytest.mark.parametrize("server", list(map(_marked, EXTRA_SETTINGS)))
def test_server_reports_its_name_lists_hotels_and_books(stack, server):
    # With a connection pool, which must work with every server.
    base = {"LAB_SERVER": server, "LAB_DB_POOL": 3, "LAB_WORKERS": 3}
    settings = _changed_settings(stack, **(base | EXTRA_SETTINGS[server]))
    stack.apply(settings)
    assert _server_name(stack, settings.target_url, path="/api/hotel/") == server
    # Only requests with the lab's token receive the header.
    assert _server_name(stack, settings.target_url, token=False) is None
    # Queries the names of Nginx's upstream, the server itself and the second server.
    verify.verify(verify.target_of(stack, settings))
    load = Load(settings.target_url)
    load.book_once()
    assert load.records.statuses == {201: 1}
    assert len(_workers(stack)) == settings.LAB_WORKERS
    _check_metrics(stack, settings)
    _check_second_server(stack, settings)
    _check_root_path(settings)
    if settings.LAB_WEBSOCKETS == "on":
        # First through Nginx, which passes on each message (maybe to the second server); then
        # directly.
        _check_socket(settings.target_url, load)
        _check_socket(settings.server_url, load)
    limit = [str(settings.LAB_DB_MAX_CONNECTIONS)]
    assert stack.sql("postgres", "SHOW max_connections") == limit
    if server in KILLABLE:
        _kill(stack, server)


def _check_root_path(settings):
    """Check that client headers cannot move the project below another path, which would open
    closed routes and bypass limits.
    """
    for name in ("Daphne-Root-Path", "SCRIPT_NAME", "Script-Name", "X-Forwarded-Prefix"):
        response = httpx.get(f"{settings.target_url}/x/readyz", headers={name: "/x"})
        assert response.status_code == 404, name
    response = httpx.get(f"{settings.server_url}/x/readyz", headers={"Daphne-Root-Path": "/x"})
    assert response.status_code == 404


def _check_metrics(stack, settings):
    """Check that sums exclude earlier workers, whether or not the server has a hook for it."""
    text = httpx.get(settings.metrics_url).text
    has_second_server = settings.LAB_SECOND_SERVER != "off"
    assert f'lab_workers{{role="backend"}} {settings.LAB_WORKERS}.0' in text
    assert ('lab_workers{role="beside"} 1.0' in text) == has_second_server
    assert "lab_http_requests_in_flight 0.0" in text
    # An ASGI worker has no fixed number of slots.
    slots = {"gunicorn-sync": 3, "gunicorn-gthread": 3 * settings.LAB_THREADS}
    assert f"lab_worker_slots {slots.get(settings.LAB_SERVER, 0)}.0" in text


def _workers(stack):
    """Return the processes that serve: those with Django loaded, unlike masters and helpers."""
    main = psutil.Process(stack._supervision.pid("backend"))
    return [p for p in (main, *main.children(recursive=True)) if "_psycopg" in _memory_maps(p)]


def _memory_maps(process):
    return " ".join(entry.path for entry in process.memory_maps())


def _check_second_server(stack, settings):
    second_server = settings.LAB_SECOND_SERVER
    states = {service.name: service.state for service in stack.services()}
    assert states["backend-beside"] == ("missing" if second_server == "off" else "running")
    expected = settings.LAB_SERVER if second_server == "off" else second_server
    assert _server_name(stack, settings.target_url, path=f"/async{UNKNOWN_PATH}") == expected
    assert _server_name(stack, settings.target_url) == settings.LAB_SERVER


def _check_socket(url, load):
    with connect(f"{url.replace('http', 'ws')}/ws/hotel/{load.hotel}/") as websocket:
        assert json.loads(websocket.recv(timeout=10)) == {"type": "ready", "hotel": load.hotel}
        load.book_once()
        assert json.loads(websocket.recv(timeout=10))["type"] == "availability"


def _kill(stack, server):
    """Kill the server. Its workers must release the socket for the next server."""
    main = psutil.Process(stack._supervision.pid("backend"))
    workers = main.children(recursive=True)
    main.kill()
    wait_for(lambda: not any(map(is_alive, workers)), seconds=20, what="The workers' end")
    wait_for(lambda: _current_server(stack) == server, seconds=60, what="A new server")


def _current_server(stack):
    try:
        return _server_name(stack, stack.settings().backend_url)
    except httpx.HTTPError:
        return None


def test_new_settings_apply_when_caches_are_emptied(stack):
    changes = {"LAB_SERVER": "gunicorn-gthread", "LAB_DB_MAX_CONNECTIONS": 62}
    settings = _changed_settings(stack, LAB_SECOND_SERVER="daphne", **changes)
    with stack.empty_caches(settings):
        for url in (settings.target_url, settings.backend_url):
            with pytest.raises(httpx.ConnectError):
                httpx.get(url)
        # Postgres runs with its new limit: a database is restored at this point.
        assert stack.sql("postgres", "SHOW max_connections") == ["62"]
    assert stack.settings() == settings
    verify.verify(verify.target_of(stack, settings))


@contextmanager
def _missing_key(stack):
    key = stack._state.secrets / "secret_key"
    hidden = key.rename(key.with_suffix(".hidden"))
    try:
        yield
    finally:
        hidden.rename(key)


def test_failed_server_start_is_reported_and_next_start_succeeds(stack):
    settings = _changed_settings(stack, LAB_SERVER="daphne", LAB_WORKERS=1)
    with (
        _missing_key(stack),
        pytest.raises(LabError, match=r"(?s)backend did not start.+secret_key can't be read"),
        stack.empty_caches(settings),
    ):
        pass
    with stack.empty_caches(settings):
        pass
    assert _server_name(stack, settings.target_url) == "daphne"


def test_verification_fails_if_another_server_answers(stack):
    """The server is queried, not the setting; here the setting is wrong."""
    wrong = _changed_settings(stack, LAB_SERVER="uvicorn")
    with pytest.raises(
        LabError, match=r"was answered by gunicorn-sync, but the settings require uvicorn"
    ):
        verify._check_server(verify.target_of(stack, wrong))
