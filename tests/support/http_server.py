"""A small HTTP server in this process, for a target whose requests a test reads."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class QuietHandler(BaseHTTPRequestHandler):
    """Keeps connections open, and prints nothing."""

    protocol_version = "HTTP/1.1"
    # Else the body waits 40 ms for the acknowledgement of the headers.
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def serve_http(handler: type[QuietHandler]) -> Iterator[str]:
    """Serve on a free port during the block; yield the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
