"""Servers with WebSockets on the test database, and their messages (test_live*.py)."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager

import pytest
from config.settings import BASE_DIR
from django.db import connection
from websockets.exceptions import ConnectionClosed

from load_lab.stack.native.supervision import port_is_open, wait_for
from tests.support.ports import free_port

SECONDS = 10
COMMANDS = {
    "uvicorn": ["uvicorn", "config.asgi:application", "--lifespan", "off", "--port"],
    "daphne": ["daphne", "config.asgi:application", "-p"],
}


@contextmanager
def serve(name, **environ):
    """Start a server on the test database; yield its address without the scheme."""
    port = free_port()
    env = {**os.environ, "PGDATABASE": connection.settings_dict["NAME"], **environ}
    env |= {"DJANGO_SETTINGS_MODULE": "config.settings", "BACKEND_ALLOWED_HOSTS": "*"}
    process = subprocess.Popen(
        [sys.executable, "-m", *COMMANDS[name], str(port)], cwd=BASE_DIR, env=env
    )
    try:
        wait_for(lambda: port_is_open("127.0.0.1", port), seconds=30, what=name)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def receive(websocket):
    return json.loads(websocket.recv(timeout=SECONDS))


def close_code(websocket):
    """Return the close code; fail if a message arrives first."""
    with pytest.raises(ConnectionClosed) as error:
        websocket.recv(timeout=SECONDS)
    return error.value.rcvd.code
