"""`lab set` on the native engine: changes, rejected settings, and requests during a change."""

import threading
from contextlib import contextmanager

import httpx
import psutil
import pytest

from load_lab.errors import LabError
from load_lab.settings import update_settings
from load_lab.stack.native.supervision import wait_for
from load_lab.stack.reported import api_problem, query_nginx


def test_set_changes_the_settings_that_backend_reports(lab, stack):
    result = lab("set", "LAB_DETAIL=fast", "LAB_WORKERS=3", "LAB_DB_POOL=4", "--json")
    assert result.code == 0, result.err
    active = httpx.get(
        f"{stack.settings().backend_url}/lab/settings", headers={"X-Lab-Token": stack.token()}
    ).json()["settings"]
    assert (active["LAB_DETAIL"], active["LAB_WORKERS"], active["LAB_DB_POOL"]) == (
        *("fast", "3", "4"),
    )
    assert len(psutil.Process(stack._supervision.pid("backend")).children()) == 3


@pytest.mark.parametrize(
    "assignments",
    [
        ("LAB_DETAIL=fast",),
        # Without LAB_SHED, which rejects requests that wait for new workers on a busy machine.
        ("LAB_NGINX_CACHE=protected", "LAB_REDIS_CACHE=versioned"),
    ],
)
def test_set_loses_no_request(lab, stack, assignments):
    with _continuous_requests(stack) as statuses:
        assert lab("set", *assignments).code == 0
        # On a busy machine, few are answered before the command ends.
        wait_for(lambda: len(statuses) > 30, seconds=20, what="30 answers")
    assert set(statuses) == {200}


@pytest.mark.settings("LAB_LATENCY_MS=60")
def test_removing_a_delay_loses_no_request(lab, stack):
    with _continuous_requests(stack) as statuses:
        assert lab("set", "LAB_LATENCY_MS=0").code == 0
    assert set(statuses) == {200}
    assert len(statuses) > 10
    assert httpx.get(f"http://127.0.0.1:{stack.settings().LAB_TOXIPROXY_PORT}/proxies").json() == {}


@contextmanager
def _continuous_requests(stack):
    url, statuses, end = f"{stack.settings().target_url}/api/hotel/", [], threading.Event()

    def send():
        while not end.wait(0.005):
            try:
                statuses.append(httpx.get(url, timeout=30).status_code)
            except httpx.HTTPError as error:
                statuses.append(repr(error))

    threads = [threading.Thread(target=send) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        yield statuses
    finally:
        end.set()
        for thread in threads:
            thread.join()


def test_preset_is_active_in_every_service_when_set_returns(lab, stack):
    result = lab("set", "--preset", "best", "LAB_NGINX_CACHE_TTL=2s", "--json")
    active = result.json["settings"]
    expected = {"LAB_NGINX_CACHE": "protected", "LAB_REDIS_CACHE": "versioned", "LAB_SHED": "on"}
    assert active.items() >= (expected | {"LAB_NGINX_CACHE_TTL": "2s"}).items()
    url = f"{stack.settings().target_url}/api/hotel/"
    statuses = [httpx.get(url).headers["X-Cache-Status"] for _ in range(2)]
    assert statuses[1] == "HIT"


def test_no_old_worker_of_nginx_answers_after_a_change(stack):
    for cache in ("protected", "off", "protected"):
        settings = update_settings(stack.settings(), [f"LAB_NGINX_CACHE={cache}"])
        stack.apply(settings)
        answers = {query_nginx(settings)["LAB_NGINX_CACHE"] for _ in range(40)}
        assert answers == {cache}


def test_article_preset_matches_the_defaults():
    from load_lab.settings import defaults
    from load_lab.settings.presets import preset_assignments

    assert {f"{k}={v}" for k, v in defaults().items()} >= set(preset_assignments("article"))


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("LAB_DETAIL=quick", "Allowed: naive, fast"),
        ("LAB_COLOUR=red", "There is no setting LAB_COLOUR"),
        ("LAB_HTTP_PORT=1234", "can't change while the stack runs"),
        ("LAB_TIMEOUT=55", "must be shorter than LAB_PROXY_TIMEOUT=55"),
        ("LAB_DETAIL", "Write NAME=VALUE"),
    ],
)
def test_set_rejects_invalid_assignments_and_changes_nothing(lab, stack, assignment, message):
    before = stack.settings()
    result = lab("set", assignment)
    assert result.is_one_message(2)
    assert message in result.err
    assert stack.settings() == before


DAPHNE = ("LAB_SERVER=daphne", "LAB_WORKERS=1")


def test_repeating_a_failed_set_applies_it(lab, stack):
    """The settings are saved before the server reads them, so they may not be active yet."""
    key = stack._state.secrets / "secret_key"
    hidden = key.rename(key.with_suffix(".hidden"))
    try:
        failure = lab("set", *DAPHNE, "LAB_NGINX_CACHE=basic")
    finally:
        hidden.rename(key)
    assert failure.is_one_message(1)
    assert "repeat the command" in failure.err
    # Supervisor would restart the server by itself, but not reconfigure Nginx.
    assert lab("set", *DAPHNE, "LAB_NGINX_CACHE=basic").code == 0
    settings = httpx.get(f"{stack.settings().nginx_status_url}/settings").json()
    assert settings["LAB_NGINX_CACHE"] == "basic"
    assert not api_problem(stack.settings())


def test_settings_that_cannot_be_applied_leave_stack_unchanged(stack):
    before = stack.settings()
    settings = update_settings(before, ["LAB_LATENCY_MS=60", "LAB_WORKBENCH=on"])
    stack._supervision.stop_service("toxiproxy")
    with pytest.raises(LabError, match="Toxiproxy is unreachable"), stack.empty_caches(settings):
        pass
    assert stack.settings() == before
    assert not api_problem(before)
    stack.up(before)
