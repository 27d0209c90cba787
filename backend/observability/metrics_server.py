"""Serve /metrics in a separate process, so that it responds while the workers are saturated.

python -m observability.metrics_server [STACK]

STACK marks the stack of this process in the process list.
"""

import signal
import socket
import sys
import threading

from config import env
from prometheus_client import CollectorRegistry, start_http_server

from observability import collectors

_CHECK_INTERVAL_SECONDS = 2


def main() -> None:
    """Serve until SIGTERM or SIGINT."""
    host, _, port = env.text("BACKEND_METRICS_BIND").rpartition(":")
    registry = CollectorRegistry()
    collectors.register(registry)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    server, thread = start_http_server(int(port), host, registry)
    had_network = _has_network()
    while not stop.wait(_CHECK_INTERVAL_SECONDS):
        if had_network and not _has_network():
            sys.exit("The backend's network was removed. Restart this process to join the new one.")
    server.shutdown()
    thread.join()


def _has_network() -> bool:
    """Return whether there is an interface other than loopback.

    In compose this process uses the backend's network namespace, which loses all others when the
    backend's container restarts.
    """
    return len(socket.if_nameindex()) > 1


if __name__ == "__main__":
    main()
