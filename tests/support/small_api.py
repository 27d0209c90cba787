"""A small API with an OpenAPI document, and the faults that an exploration meets."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.http_server import QuietHandler, serve_http

TOKEN = "Token canary-8e1f53b9d07c"
HOTELS = [{"id": i, "name": f"Hotel {i}", "city": f"City/{i % 3}"} for i in range(101, 141)]
PAGE = 30
# No list has them: they are in links, in other answers, or in the document.
POSTS = ("a-b", "c-d")
GUESTS = ("me", "ada")


@dataclass
class SmallApi:
    """`paths` are the requests that arrived, in order: "GET /hotels/"."""

    url: str = ""
    needs_token: bool = False
    # Each address is answered at its second request; the first one's connection is closed.
    closes_first: bool = False
    # In links of its answers: another server's address.
    elsewhere: str = "http://203.0.113.1"
    paths: list[str] = field(default_factory=list)
    cookies: list[str] = field(default_factory=list)
    agents: set[str] = field(default_factory=set)

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[int, Any]:
        """Return status and body; the body of a redirect is its location."""
        match path.strip("/").split("/"):
            case ["api", "start"]:
                return 200, self._links()
            case ["api", "empty"]:
                return 200, []
            case ["api", "books"]:
                return 200, [{"id": 1, "isbn": "978-0"}]
            case ["api", "search"]:
                return (200, []) if query.get("city") else (400, {})
            case ["api", "hotels", *rest]:
                return self._hotels(rest)
            case ["api", name, value]:
                return self._details(name, value)
            case _:
                return self._faults(path)

    def _hotels(self, rest: list[str]) -> tuple[int, Any]:
        match rest:
            case []:
                return 200, {"count": len(HOTELS), "next": "?page=2", "results": HOTELS[:PAGE]}
            case [number]:
                found = [hotel for hotel in HOTELS if str(hotel["id"]) == number]
                return (200, found[0]) if found else (404, {})
            case [number, "suites"]:
                return 200, [{"number": f"{number}-{n}", "free": True} for n in "12"]
            case [number, "suites", suite]:
                return (200, {}) if suite.startswith(f"{number}-") else (404, {})
            case _:
                return 404, {}

    def _details(self, name: str, value: str) -> tuple[int, Any]:
        exists = {
            "posts": value in POSTS,
            "cities": value.startswith("City%2F"),
            "guests": value in GUESTS,
            "books": value == "978-0",
            "reports": value in ("daily", "weekly"),
        }
        if not exists.get(name):
            return 404, {}
        if name == "posts":
            return 200, [{"author": {"login": login}} for login in ("..", *GUESTS)]
        return (202 if value == "weekly" else 200), {}

    def _links(self) -> dict[str, Any]:
        own = [f"{self.url}/api/posts/{slug}/" for slug in POSTS]
        return {
            "posts": [*own, f"{self.elsewhere}/api/posts/other/"],
            "next": f"{self.elsewhere}/api/start/",
            "leave": "/api/guests/logout/",
        }

    def _faults(self, path: str) -> tuple[int, Any]:
        faults = {"/api/broken/": (500, {}), "/api/secret/": (403, {}), "/api/old/": (301, "/new/")}
        return faults.get(path, (404, {}))


DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.3",
    "servers": [{"url": "https://{host}/api", "variables": {"host": {"default": "example.org"}}}],
    "paths": {
        "/start/": {"get": {}},
        "/hotels/": {"get": {"parameters": [{"name": "page", "in": "query"}]}, "post": {}},
        "/hotels/{id}/": {
            "parameters": [{"$ref": "#/components/parameters/id"}],
            "get": {"responses": {"200": {"$ref": "#/components/responses/tree"}}},
            "delete": {},
        },
        "/hotels/{hotel_id}/suites/": {"get": {}},
        "/hotels/{hotel_id}/suites/{number}/": {"get": {}},
        "/hotels/{id}/delete/": {"get": {}},
        "/posts/{slug}/": {"get": {}},
        "/cities/{city}/": {"get": {}},
        "/guests/{login}/": {"get": {}},
        "/guests/me/": {"get": {}},
        "/books/": {"get": {}},
        "/books/{book_isbn}/": {"get": {}},
        "/lost/{id}/": {"get": {}},
        "/reports/{kind}/": {
            "get": {
                "parameters": [
                    {
                        "name": "kind",
                        "in": "path",
                        "schema": {"allOf": [{"enum": ["daily", "weekly"]}]},
                    }
                ]
            }
        },
        "/search/": {"get": {"parameters": [{"name": "city", "in": "query", "required": True}]}},
        "/empty/": {"get": {}},
        "/empty/{uuid}/": {"get": {}},
        "/broken/": {"get": {}},
        "/secret/": {"get": {}},
        "/old/": {"get": {}},
        "/session/": {"get": {"operationId": "userLogout"}},
    },
    "security": [{"token": []}],
    "components": {
        "securitySchemes": {"token": {"type": "apiKey", "in": "header", "name": "X-Api-Key"}},
        "parameters": {
            "id": {"name": "id", "in": "path", "schema": {"$ref": "#/components/schemas/node"}},
            "loop": {"$ref": "#/components/parameters/loop"},
        },
        "schemas": {"node": {"anyOf": [{"$ref": "#/components/schemas/node"}]}},
        "responses": {"tree": {"$ref": "#/components/responses/tree"}},
    },
}


@contextmanager
def serve_api(api: SmallApi) -> Iterator[SmallApi]:
    """Serve the API at `api.url` during the block."""
    with serve_http(_handler(api)) as api.url:
        yield api


def _handler(api: SmallApi) -> type[QuietHandler]:
    class Handler(QuietHandler):
        def do_GET(self) -> None:
            api.paths.append(f"{self.command} {self.path}")
            api.agents.add(self.headers["User-Agent"])
            api.cookies += self.headers.get_all("Cookie", [])
            if api.closes_first and api.paths.count(api.paths[-1]) == 1:
                self.close_connection = True
                return
            address = urlsplit(self.path)
            if api.needs_token and self.headers["Authorization"] != TOKEN:
                self._send(401, {}, {"WWW-Authenticate": 'Token realm="api"'})
                return
            status, body = api.answer(address.path, parse_qs(address.query))
            self._send(status, body, {"Location": body} if status == 301 else {})

        do_HEAD = do_POST = do_DELETE = do_GET

        def _send(self, status: int, document: Any, headers: dict[str, str]) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            fields = {"Content-Type": "application/json", "Content-Length": str(len(body))}
            self.send_header("Set-Cookie", "session=1")
            for name, value in (fields | headers).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    return Handler
