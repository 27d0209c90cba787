"""layer-hello: through Redis to a real worker process and back."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from asgiref.sync import async_to_sync
from channels.layers import channel_layers
from config import env
from config.settings import BASE_DIR
from django.test import AsyncClient, Client
from redis import Redis
from workbench import layer

PATHS = ("/workbench/layer-hello/", "/async/workbench/layer-hello/")
REDIS = os.environ["BACKEND_REDIS_URL"].rpartition("/")[0] + "/1"


def _redis():
    return Redis.from_url(REDIS, password=env.secret("redis_password"))


@pytest.fixture(scope="module")
def worker(stack):
    argv = [sys.executable, "manage.py", "runworker", layer.CHANNEL]
    env = {**os.environ, "LAB_WORKBENCH": "on"}
    process = subprocess.Popen(argv, cwd=BASE_DIR, env=env)
    yield process
    process.terminate()
    process.wait()


@pytest.fixture(autouse=True)
def _empty(stack):
    """Delete the messages that earlier tests left in the queue."""
    _redis().flushdb()


@pytest.fixture
def short_timeout(monkeypatch):
    monkeypatch.setattr(layer, "TIMEOUT_SECONDS", 0.2)


@pytest.mark.parametrize("path", PATHS)
def test_response_comes_from_the_worker(worker, monkeypatch, path):
    monkeypatch.setattr(layer, "TIMEOUT_SECONDS", 20)  # includes the start of the worker
    assert Client().get(path).json() == {"hello": "world", "worker": worker.pid}
    assert async_to_sync(AsyncClient().get)(path).json()["worker"] == worker.pid


@pytest.mark.parametrize("path", PATHS)
def test_each_thread_of_a_process_gets_its_response(worker, path):
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: Client().get(path).json(), range(24)))
    assert answers == [{"hello": "world", "worker": worker.pid}] * 24


def test_requests_leave_no_reply_channels_in_redis(worker):
    for _ in range(3):
        assert Client().get(PATHS[0]).status_code == 200
    keys = {key for key in _redis().scan_iter() if b"specific" in key}
    assert keys == set()


@pytest.mark.parametrize("path", PATHS)
def test_missing_worker_is_503_with_retry_after(short_timeout, path, monkeypatch):
    monkeypatch.setattr(layer, "CHANNEL", "nobody-listens")
    answer = Client().get(path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "no_worker")
    assert answer.headers["Retry-After"] == "1"


@pytest.mark.parametrize("path", PATHS)
def test_unavailable_redis_is_503(path, settings):
    _layer(settings, hosts=["redis://127.0.0.1:1/1"])
    answer = Client().get(path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "no_layer")


@pytest.mark.parametrize("path", PATHS)
def test_full_queue_is_503(short_timeout, path, settings, monkeypatch):
    monkeypatch.setattr(layer, "CHANNEL", "nobody-listens")
    _layer(settings, capacity=1)
    async_to_sync(_fill)()
    answer = Client().get(path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "overloaded")


def test_socket_timeout_of_worker_exceeds_brpop_timeout():
    default = channel_layers.make_backend("default")
    pool = default.create_pool(0)
    assert pool.connection_kwargs["socket_timeout"] > default.brpop_timeout


async def _fill():
    await channel_layers.make_backend("default").send("nobody-listens", {"type": "hello"})


def _layer(settings, **config):
    default = settings.CHANNEL_LAYERS["default"]
    changed = default | {"CONFIG": default["CONFIG"] | config}
    settings.CHANNEL_LAYERS = settings.CHANNEL_LAYERS | {"default": changed}
