"""WebSockets on real servers: a booking reaches who watches its hotel, from whichever process."""

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import httpx
import pytest
from config.settings import BASE_DIR
from django.db import connection
from live import push
from prometheus_client import REGISTRY
from websockets.exceptions import ConnectionClosed, InvalidHandshake
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
        with pytest.raises(ConnectionClosed) as closed:
            websocket.recv(timeout=SECONDS)
        assert closed.value.rcvd.code == 4404


def test_what_a_client_says_is_not_read(server, hotel, wish, api):
    with connect(f"ws://{server}/ws/hotel/{hotel.pk}/") as websocket:
        _said(websocket)
        for said in ("no JSON", b"\x00", "x" * 1000):
            websocket.send(said)
        made = api.post("/api/booking/", wish, format="json").json()
        assert _said(websocket)["booking"] == made["id"]


def test_without_the_setting_there_is_no_route(hotel):
    with _server("uvicorn", LAB_WEBSOCKETS="off") as address:
        with pytest.raises(InvalidHandshake):
            connect(f"ws://{address}/ws/hotel/{hotel.pk}/")
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
