"""Serves /metrics in a process of its own, so that saturated workers do not hide it.

python -m ops.metrics_server [STACK]

STACK is for those who look at the list of processes: it tells which stack this one belongs to.
"""

import signal
import threading

from config import env
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.multiprocess import MultiProcessCollector

from ops import collectors


def main() -> None:
    """Serve until told to stop."""
    host, _, port = env.text("BACKEND_METRICS_BIND").rpartition(":")
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    collectors.register(registry)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    server, thread = start_http_server(int(port), host, registry)
    stop.wait()
    server.shutdown()
    thread.join()


if __name__ == "__main__":
    main()
