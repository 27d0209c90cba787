"""WebSockets during failures of Redis, Postgres, the subscription or the client."""

import asyncio
import os
import socket
import struct
from contextlib import ExitStack

import pytest
from config import env
from live import push
from live.push import group_of
from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.multiprocess import MultiProcessCollector
from redis import Redis
from websockets.sync.client import connect

from load_lab.stack.native.supervision import wait_for
from tests.support.live_servers import SECONDS, close_code, receive, serve

pytestmark = pytest.mark.django_db(transaction=True)


def _pushes(outcome):
    return REGISTRY.get_sample_value("lab_live_pushes_total", {"outcome": outcome}) or 0


def test_unavailable_redis_fails_no_booking_and_is_counted(booking_data, api, settings):
    settings.CHANNEL_LAYERS = _layers_at(settings, "redis://127.0.0.1:1/1")
    before = _pushes("failed")
    assert api.post("/api/booking/", booking_data, format="json").status_code == 201
    wait_for(lambda: _pushes("failed") == before + 1, seconds=SECONDS, what="The count")


def test_frozen_redis_delays_no_booking_and_is_counted(booking_data, api, settings, monkeypatch):
    monkeypatch.setattr(push, "TIMEOUT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as frozen:
        url = f"redis://127.0.0.1:{frozen.getsockname()[1]}/1"
        settings.CHANNEL_LAYERS = _layers_at(settings, url)
        before = _pushes("failed")
        assert api.post("/api/booking/", booking_data, format="json").status_code == 201
        assert _pushes("failed") == before
        wait_for(lambda: _pushes("failed") == before + 1, seconds=SECONDS, what="The count")


def _layers_at(settings, url):
    live = settings.CHANNEL_LAYERS["live"] | {"CONFIG": {"hosts": [url]}}
    return settings.CHANNEL_LAYERS | {"live": live}


UNAVAILABLE = {
    "Redis": {"BACKEND_REDIS_URL": "redis://127.0.0.1:1/0"},
    "Postgres": {"PGPORT": "1"},
}


@pytest.mark.parametrize("what", UNAVAILABLE)
def test_unavailable_service_closes_with_1013_and_no_traceback(what, hotel, capfd):
    with (
        serve("uvicorn", LAB_WEBSOCKETS="on", **UNAVAILABLE[what]) as address,
        connect(f"ws://{address}/ws/hotel/{hotel.pk}/") as websocket,
    ):
        assert close_code(websocket) == 1013
    log = capfd.readouterr().err
    assert "A WebSocket was closed: " in log
    assert "Traceback" not in log


def test_client_dropped_during_a_push_is_no_longer_counted(hotel, tmp_path, capfd):
    with serve("uvicorn", LAB_WEBSOCKETS="on", PROMETHEUS_MULTIPROC_DIR=str(tmp_path)) as address:
        with ExitStack() as open_:
            url = f"ws://{address}/ws/hotel/{hotel.pk}/"
            websockets = [open_.enter_context(connect(url)) for _ in range(20)]
            for websocket in websockets:
                receive(websocket)
            assert _count_connections(tmp_path) == _count_subscriptions(hotel) * 20 == 20
            for websocket in websockets:
                _send(hotel, times=20)
                _abort(websocket)
        wait_for(lambda: _count_connections(tmp_path) == 0, seconds=SECONDS, what="The end of all")
        wait_for(
            lambda: _count_subscriptions(hotel) == 0, seconds=SECONDS, what="The end of the group"
        )
    log = capfd.readouterr().err
    assert "Traceback" not in log
    assert "A WebSocket was closed" not in log


def test_broken_subscription_is_renewed_and_socket_stays_open(hotel):
    with (
        serve("uvicorn", LAB_WEBSOCKETS="on") as address,
        connect(f"ws://{address}/ws/hotel/{hotel.pk}/") as websocket,
        _redis() as redis,
    ):
        receive(websocket)
        old_subscribers = _subscribers(redis)
        assert redis.client_kill_filter(_type="pubsub") > 0

        def is_renewed():
            now = _subscribers(redis)
            return now and now.isdisjoint(old_subscribers) and _count_subscriptions(hotel) == 1

        wait_for(is_renewed, seconds=SECONDS, what="The subscription")
        _send(hotel, times=1)
        assert receive(websocket) == {}


def test_booking_is_pushed_although_redis_closed_the_connection(hotel, booking_data, api):
    later = booking_data | {"check_in": "2031-06-01", "check_out": "2031-06-02"}
    with (
        serve("uvicorn", LAB_WEBSOCKETS="on") as address,
        connect(f"ws://{address}/ws/hotel/{hotel.pk}/") as websocket,
        _redis() as redis,
    ):
        receive(websocket)
        for data in (booking_data, later):
            api.post("/api/booking/", data, format="json")
            assert receive(websocket)["check_in"] == data["check_in"]
            assert redis.client_kill_filter(_type="normal", skipme=True) > 0


def _redis():
    url, password = os.environ["BACKEND_REDIS_URL"], env.secret("redis_password")
    return Redis.from_url(url, password=password)


def _subscribers(redis):
    return {client["id"] for client in redis.client_list(_type="pubsub")}


def _send(hotel, times):
    for _ in range(times):
        message = {"type": "availability", "text": "{}"}
        coroutine = push._send(group_of(hotel.pk), message)
        asyncio.run_coroutine_threadsafe(coroutine, push._loop()).result(SECONDS)


def _abort(websocket):
    """Reset the connection without a close frame, like a killed client."""
    linger = struct.pack("ii", 1, 0)
    websocket.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    websocket.socket.close()


def _count_connections(folder):
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=str(folder))
    return registry.get_sample_value("lab_live_connections")


def _count_subscriptions(hotel):
    """Return how many processes are subscribed to the hotel's group in Redis."""
    name = f"asgi__group__{group_of(hotel.pk)}"
    with _redis() as redis:
        return dict(redis.pubsub_numsub(name))[name.encode()]
