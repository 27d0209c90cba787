"""Every server of LAB_SERVER: it starts, says who it is, serves, books, and can be switched."""

import json
from contextlib import contextmanager

import httpx
import psutil
import pytest
from lab_settings.kinds import Server
from websockets.sync.client import connect

from lab.errors import LabError
from lab.settings import changed
from lab.settings.presets import preset_assignments
from lab.stack import verify
from lab.stack.native.supervision import is_alive, wait_for
from tests.support.booking_load import Load

NOWHERE = "/there-is-no-such-route/"

# What else is tried with each: a switch costs seconds, so one does for both. None is the default.
ALSO = {
    "gunicorn-sync": {"LAB_SECOND_SERVER": "uvicorn"},
    "gunicorn-gthread": {"LAB_SECOND_SERVER": "daphne"},
    "gunicorn-uvicorn": {"LAB_SECOND_SERVER": "granian", "LAB_WEBSOCKETS": "on"},
    "gunicorn-asgi": {"LAB_WEBSOCKETS": "on"},
    "uvicorn": {"LAB_DB_MAX_CONNECTIONS": "61", "LAB_WEBSOCKETS": "on"},
    "daphne": {"LAB_WEBSOCKETS": "on", "LAB_WORKERS": 1},
    "granian": {"LAB_WEBSOCKETS": "on"},
}
# Gunicorn's workers see that their master is gone when they next look, within LAB_TIMEOUT / 2.
KILLED = ("uvicorn", "daphne", "granian")


@pytest.fixture(scope="module", autouse=True)
def article(stack):
    """Whatever a test sets, the next module finds the defaults."""
    yield
    stack.apply(changed(stack.settings(), preset_assignments("article")))


def _wanted(stack, **values):
    usual = {"LAB_SECOND_SERVER": "off", "LAB_DB_MAX_CONNECTIONS": "100", "LAB_WEBSOCKETS": "off"}
    usual["LAB_WORKERS"] = "2"
    wanted = usual | values
    return changed(stack.settings(), [f"{name}={value}" for name, value in wanted.items()])


def _says(stack, url, *, path=NOWHERE, token=True):
    headers = {"X-Lab-Token": stack.token()} if token else {}
    return httpx.get(f"{url}{path}", headers=headers, timeout=30).headers.get("X-Lab-Server")


def test_there_is_a_line_for_every_server():
    assert set(ALSO) == set(Server)


@pytest.mark.parametrize("server", ALSO)
def test_a_server_says_who_it_is_lists_hotels_and_books(stack, server):
    # With a pool, since it has to work under each.
    usual = {"LAB_SERVER": server, "LAB_DB_POOL": 3, "LAB_WORKERS": 3}
    settings = _wanted(stack, **(usual | ALSO[server]))
    stack.apply(settings)
    assert _says(stack, settings.target_url, path="/api/hotel/") == server
    # Only the lab is told.
    assert _says(stack, settings.target_url, token=False) is None
    # Asks Nginx, the server itself and the one beside it who they are.
    verify.verify(verify.target_of(stack, settings))
    load = Load(settings.target_url)
    load.book_once()
    assert load.seen.statuses == {201: 1}
    assert len(_workers(stack)) == settings.LAB_WORKERS
    _check_metrics(stack, settings)
    _check_beside(stack, settings)
    _check_place(settings)
    if settings.LAB_WEBSOCKETS == "on":
        # By way of Nginx, which lets each message through, perhaps to the server beside; then not.
        _check_socket(settings.target_url, load)
        _check_socket(settings.server_url, load)
    limit = [str(settings.LAB_DB_MAX_CONNECTIONS)]
    assert stack.sql("postgres", "SHOW max_connections") == limit
    if server in KILLED:
        _kill(stack, server)


def _check_place(settings):
    """No client's header makes a server take the project for one below another path: closed routes
    would be open, and limits passed by.
    """
    for name in ("Daphne-Root-Path", "SCRIPT_NAME", "Script-Name", "X-Forwarded-Prefix"):
        asked = httpx.get(f"{settings.target_url}/x/readyz", headers={name: "/x"})
        assert asked.status_code == 404, name
    asked = httpx.get(f"{settings.server_url}/x/readyz", headers={"Daphne-Root-Path": "/x"})
    assert asked.status_code == 404


def _check_metrics(stack, settings):
    """Those of workers before are out of the sums, whether or not the server has a hook for it."""
    text = httpx.get(settings.metrics_url).text
    beside = settings.LAB_SECOND_SERVER != "off"
    assert f'lab_workers{{role="backend"}} {settings.LAB_WORKERS}.0' in text
    assert ('lab_workers{role="beside"} 1.0' in text) == beside
    assert "lab_http_requests_in_flight 0.0" in text
    # By ASGI a worker takes whatever comes.
    slots = {"gunicorn-sync": 3, "gunicorn-gthread": 3 * settings.LAB_THREADS}
    assert f"lab_worker_slots {slots.get(settings.LAB_SERVER, 0)}.0" in text


def _workers(stack):
    """Processes that serve: those that know Django, unlike masters and their helpers."""
    main = psutil.Process(stack._supervision.pid("backend"))
    return [p for p in (main, *main.children(recursive=True)) if "_psycopg" in _mapped(p)]


def _mapped(process):
    return " ".join(entry.path for entry in process.memory_maps())


def _check_beside(stack, settings):
    beside = settings.LAB_SECOND_SERVER
    states = {service.name: service.state for service in stack.services()}
    assert states["backend-beside"] == ("missing" if beside == "off" else "running")
    wanted = settings.LAB_SERVER if beside == "off" else beside
    assert _says(stack, settings.target_url, path=f"/async{NOWHERE}") == wanted
    assert _says(stack, settings.target_url) == settings.LAB_SERVER


def _check_socket(url, load):
    with connect(f"{url.replace('http', 'ws')}/ws/hotel/{load.hotel}/") as websocket:
        assert json.loads(websocket.recv(timeout=10)) == {"type": "ready", "hotel": load.hotel}
        load.book_once()
        assert json.loads(websocket.recv(timeout=10))["type"] == "availability"


def _kill(stack, server):
    """Its workers must not keep the socket from the server that comes after it."""
    main = psutil.Process(stack._supervision.pid("backend"))
    workers = main.children(recursive=True)
    main.kill()
    wait_for(lambda: not any(map(is_alive, workers)), seconds=20, what="The workers' end")
    wait_for(lambda: _answers(stack) == server, seconds=60, what="A new server")


def _answers(stack):
    try:
        return _says(stack, stack.settings().backend_url)
    except httpx.HTTPError:
        return None


def test_new_settings_come_with_the_start_that_empties_the_caches(stack):
    wanted = {"LAB_SERVER": "gunicorn-gthread", "LAB_DB_MAX_CONNECTIONS": 62}
    settings = _wanted(stack, LAB_SECOND_SERVER="daphne", **wanted)
    with stack.emptied(settings):
        for url in (settings.target_url, settings.backend_url):
            with pytest.raises(httpx.ConnectError):
                httpx.get(url)
        # Postgres is there, with its new limit: this is when a database is restored.
        assert stack.sql("postgres", "SHOW max_connections") == ["62"]
    assert stack.settings() == settings
    verify.verify(verify.target_of(stack, settings))


@contextmanager
def _without_its_key(stack):
    key = stack._state.secrets / "secret_key"
    hidden = key.rename(key.with_suffix(".hidden"))
    try:
        yield
    finally:
        hidden.rename(key)


def test_a_server_that_does_not_start_is_one_message_and_the_next_one_starts(stack):
    settings = _wanted(stack, LAB_SERVER="daphne", LAB_WORKERS=1)
    with (
        _without_its_key(stack),
        pytest.raises(LabError, match=r"(?s)backend did not start.+secret_key can't be read"),
        stack.emptied(settings),
    ):
        pass
    with stack.emptied(settings):
        pass
    assert _says(stack, settings.target_url) == "daphne"


def test_a_proof_that_names_another_server_is_refused(stack):
    """The server is asked, not the setting: here the setting is wrong."""
    wrong = _wanted(stack, LAB_SERVER="gunicorn-sync")
    with pytest.raises(
        LabError, match=r"was answered by .+, but the settings require gunicorn-sync"
    ):
        verify._check_server(verify.target_of(stack, wrong))
