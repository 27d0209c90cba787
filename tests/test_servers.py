"""Every server of LAB_SERVER: it starts, says who it is, serves, books, and can be switched."""

from contextlib import contextmanager
from typing import get_args

import httpx
import psutil
import pytest

from lab.engine.native.supervision import is_alive, wait_for
from lab.errors import LabError
from lab.experiment import verify
from lab.setting_types import AsgiServer, WsgiServer
from lab.settings import changed
from tests.booking_load import Load

SERVERS = (*get_args(WsgiServer), *get_args(AsgiServer))
NOWHERE = "/there-is-no-such-route/"


@pytest.fixture(scope="module")
def article(lab, stack):
    """Whatever a test sets, the next module finds the defaults."""
    yield
    assert lab("set", "--preset", "article").code == 0


def _set(lab, *wanted):
    said = lab("set", *wanted)
    assert said.code == 0, said.err


def _says(stack, url, *, path=NOWHERE, token=True):
    headers = {"X-Lab-Token": stack.token()} if token else {}
    return httpx.get(f"{url}{path}", headers=headers, timeout=30).headers.get("X-Lab-Server")


@pytest.mark.parametrize("server", SERVERS)
def test_a_server_says_who_it_is_lists_hotels_and_books(lab, stack, article, server):
    # A pool, since it has to work under each; 3 processes, since nobody is called that by default.
    _set(lab, f"LAB_SERVER={server}", "LAB_DB_POOL=3", "LAB_WORKERS=3")
    settings = stack.settings()
    assert _says(stack, settings.target_url) == server
    assert _says(stack, settings.backend_url, path="/api/hotel/") == server
    # Only the lab is told.
    assert _says(stack, settings.target_url, token=False) is None
    verify.verify(verify.target_of(stack, settings))
    load = Load(settings.target_url)
    load.book_once()
    assert load.seen.statuses == {201: 1}
    assert _workers(stack) == 3


def _workers(stack):
    """Processes that import Django: those that serve, without masters and helpers."""
    main = psutil.Process(stack._supervision.pid("backend"))
    maps = [p for p in main.children(recursive=True) if "_psycopg" in _mapped(p)]
    return len(maps)


def _mapped(process):
    return " ".join(entry.path for entry in process.memory_maps())


@pytest.mark.parametrize("server", ["uvicorn", "daphne", "granian"])
def test_a_killed_server_leaves_no_worker_and_comes_back(lab, stack, article, server):
    _set(lab, f"LAB_SERVER={server}", "LAB_WORKERS=2")
    main = psutil.Process(stack._supervision.pid("backend"))
    workers = main.children(recursive=True)
    main.kill()
    wait_for(lambda: not any(map(is_alive, workers)), seconds=10, what="The workers' end")
    url = stack.settings().backend_url
    wait_for(lambda: _answers(stack, url) == server, seconds=20, what="A new server")


def _answers(stack, url):
    try:
        return _says(stack, url)
    except httpx.HTTPError:
        return None


@pytest.mark.parametrize("beside", ["uvicorn", "daphne", "granian"])
def test_the_server_beside_gets_what_is_below_async(lab, stack, article, beside):
    _set(lab, "LAB_SERVER=gunicorn-sync", f"LAB_ASGI_BESIDE={beside}")
    url = stack.settings().target_url
    assert _says(stack, url, path=f"/async{NOWHERE}") == beside
    assert _says(stack, url) == "gunicorn-sync"
    states = {service.name: service.state for service in stack.services()}
    assert states["backend-beside"] == "running"
    assert "backend-beside" in stack.pids()


def test_without_one_beside_the_backend_gets_everything(lab, stack, article):
    _set(lab, "LAB_SERVER=uvicorn", "LAB_ASGI_BESIDE=off")
    url = stack.settings().target_url
    assert _says(stack, url, path=f"/async{NOWHERE}") == "uvicorn"
    states = {service.name: service.state for service in stack.services()}
    assert states["backend-beside"] == "stopped"
    assert "backend-beside" not in stack.pids()


def test_postgres_limit_of_connections_changes_while_the_stack_runs(lab, stack, article):
    _set(lab, "LAB_DB_MAX_CONNECTIONS=61")
    assert stack.sql("postgres", "SHOW max_connections") == ["61"]
    assert httpx.get(f"{stack.settings().target_url}/api/hotel/").status_code == 200


def test_new_settings_come_with_the_start_that_empties_the_caches(lab, stack, article):
    wanted = {"LAB_SERVER": "granian", "LAB_DB_MAX_CONNECTIONS": "62", "LAB_ASGI_BESIDE": "daphne"}
    settings = changed(stack.settings(), [f"{k}={v}" for k, v in wanted.items()])
    with stack.emptied(settings):
        for url in (settings.target_url, settings.backend_url):
            with pytest.raises(httpx.ConnectError):
                httpx.get(url)
        # Postgres is there, with its new limit: this is when a database is restored.
        assert stack.sql("postgres", "SHOW max_connections") == ["62"]
    assert stack.settings() == settings
    assert _says(stack, settings.target_url) == "granian"
    assert _says(stack, settings.target_url, path=f"/async{NOWHERE}") == "daphne"


@contextmanager
def _without_its_key(stack):
    key = stack._state.secrets / "secret_key"
    hidden = key.rename(key.with_suffix(".hidden"))
    try:
        yield
    finally:
        hidden.rename(key)


@pytest.mark.parametrize("server", ["gunicorn-sync", "daphne"])
def test_a_server_that_does_not_start_is_one_message_and_the_next_one_starts(
    lab, stack, article, server
):
    settings = changed(stack.settings(), [f"LAB_SERVER={server}", "LAB_ASGI_BESIDE=off"])
    with (
        _without_its_key(stack),
        pytest.raises(LabError, match=r"(?s)backend did not start.+secret_key can't be read"),
        stack.emptied(settings),
    ):
        pass
    with stack.emptied(settings):
        pass
    assert _says(stack, settings.target_url) == server


def test_a_proof_that_names_another_server_is_refused(lab, stack, article):
    """The backend is asked, not the setting: here the setting is wrong."""
    wrong = changed(stack.settings(), ["LAB_SERVER=gunicorn-gthread"])
    with pytest.raises(LabError, match=r"was answered by .+; the settings say gunicorn-gthread"):
        verify._check_server(verify.target_of(stack, wrong))
