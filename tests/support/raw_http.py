"""Raw HTTP that no client library would send: bytes in, an answer out."""

import json
import socket
from dataclasses import dataclass
from io import BufferedReader
from typing import Any

TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class Answer:
    """Status, headers by lower-case name, and body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str | None:
        """Return the error code if the body has the API's error format, otherwise None."""
        if self.headers.get("content-type") != "application/json":
            return None
        return self.json["error"]["code"]


class Client:
    """One persistent connection; sending and reading are separate steps."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = self.socket.makefile("rb")

    def send(self, request: bytes) -> None:
        self.socket.sendall(request)

    def answer(self, *, has_body: bool = True) -> Answer:
        """Return the next answer.

        Raises:
            ConnectionError: the server closed the connection without an answer.
        """
        return read_answer(self._reader, has_body=has_body)

    def close(self) -> None:
        self._reader.close()
        self.socket.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_answer(reader: BufferedReader, *, has_body: bool = True) -> Answer:
    """Read one answer: by Content-Length, by chunks, or to the end of the connection."""
    line = reader.readline()
    if not line.startswith(b"HTTP/"):
        raise ConnectionError(f"no answer: {line!r}")
    status, headers = int(line.split()[1]), _headers(reader)
    if not has_body or status in (204, 304):
        return Answer(status, headers, b"")
    return Answer(status, headers, _body(reader, headers))


def _headers(reader: BufferedReader) -> dict[str, str]:
    fields = {}
    while line := reader.readline().strip():
        name, _, value = line.decode("latin-1").partition(":")
        fields[name.lower()] = value.strip()
    return fields


def _body(reader: BufferedReader, headers: dict[str, str]) -> bytes:
    if "content-length" in headers:
        return reader.read(int(headers["content-length"]))
    if headers.get("transfer-encoding") != "chunked":
        return reader.read()
    parts = []
    while size := int(reader.readline(), 16):
        parts.append(reader.read(size))
        reader.readline()
    reader.readline()
    return b"".join(parts)


def head(target: str, *headers: str, method: str = "GET") -> bytes:
    """Return a request's head in exactly this spelling; a missing `Host` is added."""
    lines = [f"{method} {target} HTTP/1.1", *headers]
    if not any(line.lower().startswith("host:") for line in headers):
        lines.append("Host: lab")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def post(target: str, body: bytes, *headers: str, content_type: str = "application/json") -> bytes:
    """Return a POST request with the correct Content-Length."""
    lines = [f"Content-Type: {content_type}", f"Content-Length: {len(body)}", *headers]
    return head(target, *lines, method="POST") + body


def send_request(port: int, request: bytes, *, has_body: bool = True) -> Answer:
    """Return the answer to one request on a separate connection."""
    with Client(port) as client:
        client.send(request)
        return client.answer(has_body=has_body)
