"""WebSockets on real servers: a booking reaches who watches its hotel, from whichever process."""

import asyncio
import json
import os
import socket
import struct
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress

import httpx
import pytest
from config import env
from config.settings import BASE_DIR
from django.db import connection
from live import push
from live.push import group_of
from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.multiprocess import MultiProcessCollector
from redis import Redis
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from lab.engine.native.supervision import port_is_taken, wait_for

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS = 10
UNKNOWN = "6f0b0a52-7a0e-4c0f-9f43-5f1f6a3a2b10"
COMMANDS = {
    "uvicorn": ["uvicorn", "config.asgi:application", "--lifespan", "off", "--port"],
    "daphne": ["daphne", "config.asgi:application", "-p"],
}


@contextmanager
def _server(name, **environ):
    """A server of the tests' database; gives its address without the scheme."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = {**os.environ, "PGDATABASE": connection.settings_dict["NAME"], **environ}
    env |= {"DJANGO_SETTINGS_MODULE": "config.settings", "BACKEND_ALLOWED_HOSTS": "*"}
    process = subprocess.Popen(
        [sys.executable, "-m", *COMMANDS[name], str(port)], cwd=BASE_DIR, env=env
    )
    try:
        wait_for(lambda: port_is_taken("127.0.0.1", port), seconds=30, what=name)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module", params=list(COMMANDS))
def server(request, django_db_setup):
    with _server(request.param, LAB_WEBSOCKETS="on") as address:
        yield address


def _said(websocket):
    return json.loads(websocket.recv(timeout=SECONDS))


def _pushes(outcome):
    return REGISTRY.get_sample_value("lab_live_pushes_total", {"outcome": outcome}) or 0


def test_a_booking_reaches_everyone_who_watches_its_hotel(server, booking_by, hotel, wish, api):
    url = f"ws://{server}/ws/hotel/{hotel.pk}/"
    with connect(url) as one, connect(url) as other:
        assert [_said(each) for each in (one, other)] == [
            {"type": "ready", "hotel": str(hotel.pk)}
        ] * 2
        before = time.time()
        made = api.post("/api/booking/", wish, format="json").json()
        said = _said(one)
        assert _said(other) == said
    assert before <= said.pop("committed_at") <= time.time()
    assert said == {
        "type": "availability",
        "hotel": str(hotel.pk),
        "suite": wish["suite"],
        "booking": made["id"],
        "check_in": wish["check_in"],
        "check_out": wish["check_out"],
    }


def test_a_booking_made_by_the_same_server_arrives_too(server, hotel, wish):
    with connect(f"ws://{server}/ws/hotel/{hotel.pk}/") as websocket:
        _said(websocket)
        answer = httpx.post(f"http://{server}/api/booking/", json=wish, timeout=SECONDS)
        assert _said(websocket)["booking"] == answer.json()["id"]


def test_who_watches_hears_of_bookings_alone_that_were_made(server, hotel, wish, api):
    with connect(f"ws://{server}/ws/hotel/{hotel.pk}/") as websocket:
        _said(websocket)
        statuses = [api.post("/api/booking/", wish, format="json").status_code for _ in range(2)]
        later = wish | {"check_in": "2031-06-01", "check_out": "2031-06-02"}
        last = api.post("/api/booking/", later, format="json").json()
        assert statuses == [201, 409]
        assert [_said(websocket)["check_in"] for _ in range(2)] == ["2031-05-01", "2031-06-01"]
        assert last["check_in"] == "2031-06-01"


@pytest.mark.parametrize("path", [f"ws/hotel/{UNKNOWN}/", "ws/hotel/first/", "ws/", "api/hotel/"])
def test_what_is_unknown_is_closed_with_4404(server, path):
    with connect(f"ws://{server}/{path}") as websocket:
        # Answered where a hotel is watched, and nowhere else.
        with suppress(ConnectionClosed):
            websocket.send("ready?")
        assert _closed_with(websocket) == 4404


def _closed_with(websocket):
    """The code, when that is the first thing that comes."""
    with pytest.raises(ConnectionClosed) as closed:
        websocket.recv(timeout=SECONDS)
    return closed.value.rcvd.code


def test_who_asks_is_told_again_that_the_hotel_is_watched(server, hotel):
    with connect(f"ws://{server}/ws/hotel/{hotel.pk}/") as websocket:
        first = _said(websocket)
        for _ in range(2):
            websocket.send("ready?")
            assert _said(websocket) == first == {"type": "ready", "hotel": str(hotel.pk)}


def test_what_else_a_client_says_is_not_read(server, hotel, wish, api):
    with connect(f"ws://{server}/ws/hotel/{hotel.pk}/") as websocket:
        _said(websocket)
        for said in ("no JSON", b"\x00", "x" * 1000):
            websocket.send(said)
        made = api.post("/api/booking/", wish, format="json").json()
        assert _said(websocket)["booking"] == made["id"]


@pytest.mark.parametrize("name", COMMANDS)
def test_without_the_setting_a_handshake_is_refused(hotel, name):
    with _server(name, LAB_WEBSOCKETS="off") as address:
        for path in (f"ws/hotel/{hotel.pk}/", "ws/"):
            with pytest.raises(InvalidStatus) as refused:
                connect(f"ws://{address}/{path}")
            assert refused.value.response.status_code == 403
        assert httpx.get(f"http://{address}/api/hotel/").status_code == 200


def test_a_redis_that_is_away_costs_a_booking_nothing_and_is_counted(wish, api, settings):
    settings.CHANNEL_LAYERS = _elsewhere(settings, "redis://127.0.0.1:1/1")
    before = _pushes("failed")
    assert api.post("/api/booking/", wish, format="json").status_code == 201
    wait_for(lambda: _pushes("failed") == before + 1, seconds=SECONDS, what="The count")


def test_a_frozen_redis_costs_a_booking_nothing_and_is_counted(wish, api, settings, monkeypatch):
    monkeypatch.setattr(push, "TIMEOUT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as frozen:
        url = f"redis://127.0.0.1:{frozen.getsockname()[1]}/1"
        settings.CHANNEL_LAYERS = _elsewhere(settings, url)
        before = _pushes("failed")
        assert api.post("/api/booking/", wish, format="json").status_code == 201
        assert _pushes("failed") == before
        wait_for(lambda: _pushes("failed") == before + 1, seconds=SECONDS, what="The count")


def _elsewhere(settings, url):
    live = settings.CHANNEL_LAYERS["live"] | {"CONFIG": {"hosts": [url]}}
    return settings.CHANNEL_LAYERS | {"live": live}


AWAY = {
    "Redis": {"BACKEND_REDIS_URL": "redis://127.0.0.1:1/0"},
    "Postgres": {"PGPORT": "1"},
}


@pytest.mark.parametrize("what", AWAY)
def test_what_is_away_closes_with_try_again_and_no_traceback(what, hotel, capfd):
    with (
        _server("uvicorn", LAB_WEBSOCKETS="on", **AWAY[what]) as address,
        connect(f"ws://{address}/ws/hotel/{hotel.pk}/") as websocket,
    ):
        assert _closed_with(websocket) == 1013
    said = capfd.readouterr().err
    assert "A WebSocket was closed: " in said
    assert "Traceback" not in said


def test_who_drops_while_being_told_is_not_counted_any_more(hotel, tmp_path, capfd):
    with _server("uvicorn", LAB_WEBSOCKETS="on", PROMETHEUS_MULTIPROC_DIR=str(tmp_path)) as address:
        with ExitStack() as open_:
            url = f"ws://{address}/ws/hotel/{hotel.pk}/"
            dropping = [open_.enter_context(connect(url)) for _ in range(20)]
            for websocket in dropping:
                _said(websocket)
            assert _watching(tmp_path) == _watched(hotel) * 20 == 20
            for websocket in dropping:
                _tell(hotel, times=20)
                _abort(websocket)
        wait_for(lambda: _watching(tmp_path) == 0, seconds=SECONDS, what="The end of all")
        wait_for(lambda: _watched(hotel) == 0, seconds=SECONDS, what="The end of the group")
    said = capfd.readouterr().err
    assert "Traceback" not in said
    assert "A WebSocket was closed" not in said


def test_a_subscription_that_breaks_is_renewed_and_the_socket_stays(hotel):
    with (
        _server("uvicorn", LAB_WEBSOCKETS="on") as address,
        connect(f"ws://{address}/ws/hotel/{hotel.pk}/") as websocket,
        _redis() as redis,
    ):
        _said(websocket)
        assert redis.client_kill_filter(_type="pubsub") > 0
        assert _watched(hotel) == 0
        wait_for(lambda: _watched(hotel) == 1, seconds=SECONDS, what="The subscription")
        _tell(hotel, times=1)
        assert _said(websocket) == {}


def _redis():
    url, password = os.environ["BACKEND_REDIS_URL"], env.secret("redis_password")
    return Redis.from_url(url, password=password)


def _tell(hotel, times):
    for _ in range(times):
        message = {"type": "availability", "text": "{}"}
        sending = push._send(group_of(hotel.pk), message)
        asyncio.run_coroutine_threadsafe(sending, push._loop()).result(SECONDS)


def _abort(websocket):
    """As a client that is killed: no close frame, a reset."""
    linger = struct.pack("ii", 1, 0)
    websocket.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    websocket.socket.close()


def _watching(folder):
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=str(folder))
    return registry.get_sample_value("lab_live_connections")


def _watched(hotel):
    """How many processes are subscribed to the hotel's group, as Redis sees it."""
    name = f"asgi__group__{group_of(hotel.pk)}"
    with _redis() as redis:
        return dict(redis.pubsub_numsub(name))[name.encode()]
