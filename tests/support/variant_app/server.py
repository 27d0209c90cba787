"""A server whose answer at /version names its code, an option and a variable.

With a third argument it ends after that many requests.
"""

import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CODE = "old"
LAST = int(sys.argv[3]) if len(sys.argv) > 3 else 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    count = 0

    def do_GET(self) -> None:
        Handler.count += 1
        if Handler.count == LAST:
            os._exit(1)
        body = f"{CODE} {sys.argv[2]} {os.environ.get('SHOP', 'no')}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
