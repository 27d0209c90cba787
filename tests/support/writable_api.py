"""A small API that stores what is written, and rejects what a real one would."""

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from tests.support.http_server import QuietHandler, serve_http

CITIES = [{"id": 7, "name": "Bern"}, {"id": 8, "name": "Rome"}]
HOTELS = {i: {"id": i, "name": f"Hotel {i}", "city": 7 + i % 2, "stars": 3} for i in range(1, 6)}


@dataclass
class Arrived:
    """A request, and what it was answered with."""

    method: str
    path: str
    body: str
    status: int


@dataclass
class WritableApi:
    """Hotels have a unique name, a city, and a grade that nobody may set. Tags are a form, and
    their answer has a Location only.

    `seconds` is the duration of each request that writes, `overlaps` the objects that had two of
    them at once.
    """

    seconds: float = 0
    url: str = ""
    token: str = "Token k3y-5d81f0c2"
    hotels: dict[int, dict[str, Any]] = field(default_factory=lambda: dict(HOTELS))
    notes: dict[int, list[str]] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    arrived: list[Arrived] = field(default_factory=list)
    overlaps: list[str] = field(default_factory=list)
    _busy: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _next: int = 100

    def handle(self, method: str, path: str, body: str) -> tuple[int, Any, str]:
        """Return status, JSON and Location, after the request took its time."""
        known = (
            re.match(r"/api/(hotels|tags)/([^/]+)/(?!notes/)", path) if method != "GET" else None
        )
        with self._lock:
            if known:
                self._busy[known[0]] += 1
                if self._busy[known[0]] > 1:
                    self.overlaps.append(known[0])
        if known:
            time.sleep(self.seconds)
        with self._lock:
            if known:
                self._busy[known[0]] -= 1
            status, document, location = self._answer(method, path, body)
            self.arrived.append(Arrived(method, path, body, status))
        return status, document, location

    def _answer(self, method: str, path: str, body: str) -> tuple[int, Any, str]:
        match method, path.strip("/").split("/")[1:]:
            case "GET", ["cities"]:
                return 200, CITIES, ""
            case _, ["hotels", *rest]:
                return self._hotels(method, rest, body)
            case "POST", ["tags"]:
                return self._add_tag({k: v for k, [v] in parse_qs(body).items()})
            case "DELETE", ["tags", slug]:
                return (204 if self.tags.pop(slug, None) else 404), None, ""
            case "POST", ["first"]:
                return 200, HOTELS[1], ""
            case "POST", ["echo"]:
                return 400, {"detail": f"bad header {self.token}"}, ""
            case _:
                return 404, {}, ""

    def _hotels(self, method: str, rest: list[str], body: str) -> tuple[int, Any, str]:
        if not rest and method == "GET":
            return 200, [self._shown(each) for each in self.hotels.values()], ""
        if not rest:
            return self._add_hotel(json.loads(body)) if method == "POST" else (500, {}, "")
        hotel = self.hotels.get(int(rest[0]) if rest[0].isdecimal() else 0)
        return self._hotel(method, hotel, rest[1:], body) if hotel else (404, {}, "")

    def _hotel(
        self, method: str, hotel: dict[str, Any], rest: list[str], body: str
    ) -> tuple[int, Any, str]:
        match method, rest:
            case "GET", []:
                return 200, self._shown(hotel), ""
            case (("PATCH" | "PUT"), []):
                changed = json.loads(body)
                errors = self._errors(changed, hotel["id"], partial=method == "PATCH")
                return (400, errors, "") if errors else (200, self._shown(hotel), "")
            case "DELETE", []:
                del self.hotels[hotel["id"]]
                return 204, None, ""
            case "POST", ["close"]:
                return 200, {"closed": True}, ""
            case "GET", ["notes"]:
                return 200, self.notes.get(hotel["id"], []), ""
            case "POST", ["notes"]:
                self.notes.setdefault(hotel["id"], []).append(json.loads(body)["text"])
                return 201, {"text": "…"}, ""
            case _:
                return 404, {}, ""

    def _add_hotel(self, fields: dict[str, Any]) -> tuple[int, Any, str]:
        errors = self._errors(fields, 0)
        if errors:
            return 400, errors, ""
        self._next += 1
        self.hotels[self._next] = {"id": self._next, "city": fields["city"]["id"], "stars": 3}
        self.hotels[self._next]["name"] = fields["name"]
        return 201, self._shown(self.hotels[self._next]), ""

    def _errors(self, fields: dict[str, Any], own: int, *, partial: bool = False) -> dict[str, Any]:
        names = {each["name"] for each in self.hotels.values() if each["id"] != own}
        errors = {}
        if fields.get("name") in names:
            errors["name"] = ["hotel with this name already exists."]
        if fields.get("grade"):
            errors["grade"] = ["Only an administrator may set it."]
        for name in ("name", "city"):
            if name not in fields and not partial:
                errors[name] = ["This field is required."]
        if "city" in fields and fields["city"] not in [{"id": city["id"]} for city in CITIES]:
            errors["city"] = ["Unknown city."]
        return errors

    def _shown(self, hotel: dict[str, Any]) -> dict[str, Any]:
        """Return a hotel as answers have it: with its city nested."""
        city = next(each for each in CITIES if each["id"] == hotel["city"])
        token = f"s3cr3t-{hotel['id']}"
        return {**hotel, "city": city, "grade": "A", "api_token": token, "created": "2026-01-01"}

    def _add_tag(self, fields: dict[str, str]) -> tuple[int, Any, str]:
        slug = fields.get("label", "").lower()
        if not slug or slug in self.tags:
            return 422, {"detail": [{"loc": ["body", "label"], "msg": "already taken"}]}, ""
        self.tags[slug] = fields["label"]
        return 201, None, f"{self.url}/api/tags/{slug}/"


def _json(schema: dict[str, Any], kind: str = "application/json") -> dict[str, Any]:
    return {"requestBody": {"content": {kind: {"schema": schema}}}}


_HOTEL = {"$ref": "#/components/schemas/HotelRequest"}
_FORM = "application/x-www-form-urlencoded"

DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.3",
    "paths": {
        "/api/cities/": {"get": {}},
        "/api/hotels/": {
            "get": {},
            "post": _json(_HOTEL),
            "patch": _json({"type": "array", "items": _HOTEL}),
            "delete": {},
        },
        "/api/hotels/{id}/": {
            "get": {},
            "put": _json(_HOTEL),
            "patch": _json({**_HOTEL, "required": []}),
            "delete": {"operationId": "hotels_destroy"},
        },
        "/api/hotels/{id}/close/": {"post": {}},
        "/api/hotels/{id}/password/": {"post": {}},
        "/api/hotels/{id}/notes/": {
            "get": {},
            "post": _json(
                {
                    "type": "object",
                    "required": ["text"],
                    "properties": {"text": {"type": "string", "minLength": 1}},
                }
            ),
        },
        "/api/tags/": {
            "post": _json(
                {"required": ["label"], "properties": {"label": {"type": "string"}}}, _FORM
            )
        },
        "/api/tags/{slug}/": {"delete": {}},
        "/api/first/": {"post": {}},
        "/api/first/{id}/": {"patch": {}, "delete": {}},
        "/api/echo/": {"post": _json({"type": "object"})},
        "/api/uploads/": {"post": _json({"type": "object"}, "multipart/form-data")},
        "/api/settings/": {"put": _json({"type": "object"})},
        "/api/logout/": {"post": {}},
    },
    "components": {
        "schemas": {
            "HotelRequest": {
                "type": "object",
                "required": ["name", "city"],
                "properties": {
                    "id": {"type": "integer", "readOnly": True},
                    "name": {"type": "string", "maxLength": 30},
                    "grade": {"type": "string"},
                    "api_token": {"type": "string"},
                    "stars": {"type": "integer"},
                    "city": {
                        "type": "object",
                        "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
                    },
                },
            }
        }
    },
}


@contextmanager
def serve_writable_api(api: WritableApi) -> Iterator[WritableApi]:
    """Serve the API at `api.url` during the block; its document is at /schema/."""

    class Handler(QuietHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            if self.path in ("/", "/schema/"):
                self._send(200, DOCUMENT if self.path == "/schema/" else {}, "")
            else:
                self._send(*api.handle(self.command, self.path, body))

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

        def _send(self, status: int, document: Any, location: str) -> None:
            body = b"" if document is None else json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            if location:
                self.send_header("Location", location)
            self.end_headers()
            self.wfile.write(body)

    with serve_http(Handler) as api.url:
        yield api
