"""A site of HTML pages that may turn into one page, as after the end of a session."""

import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.support.http_server import QuietHandler, serve_http

FORM = '<form method="post"><input name="user"><input type="password" name="password"></form>'
ROWS = "".join(f'<a href="/items/{i}/">item {i}</a>' for i in range(100))


def login_page(length: int = 0) -> str:
    return f"<html>{FORM}{'x' * length}</html>"


@dataclass
class HtmlSite:
    """From its request `faulty_from` on, `answer` returns status, body and location by path.
    `varies`: its front page has another length each time. Without the cookie `session`, each page
    is the login page.
    """

    url: str = ""
    varies: bool = False
    session: str = ""
    requests: int = 0
    faulty_from: float = math.inf
    answer: Callable[[str], tuple[int, str, str]] = field(default=lambda _path: (200, "", ""))
    _random: random.Random = field(default_factory=lambda: random.Random(1))

    def page(self, path: str) -> str:
        """Return a page; all have a login form in their header but the lists and items."""
        match path.strip("/").split("/"):
            case ["items"] | ["products"]:
                return f"<html>{ROWS}</html>"
            case ["items", number]:
                return f"<html><h1>item {number}</h1></html>"
            case [""]:
                length = self._random.randint(100, 50_000) if self.varies else 500
                return f"<html>{'x' * length}</html>"
            case ["login"]:
                return login_page()
            case _:
                return f"<html><header>{FORM}</header>{ROWS}</html>"


@contextmanager
def serve_site(site: HtmlSite) -> Iterator[HtmlSite]:
    """Serve the site at `site.url` during the block."""

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            site.requests += 1
            is_faulty = site.requests >= site.faulty_from
            is_known = not site.session or self.headers["Cookie"] == site.session
            usual = (200, site.page(self.path) if is_known else login_page(), "")
            status, body, location = site.answer(self.path) if is_faulty else usual
            content = body.encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            if location:
                self.send_header("Location", location)
            self.end_headers()
            self.wfile.write(content)

    with serve_http(Handler) as site.url:
        yield site
