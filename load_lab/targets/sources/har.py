"""A mix from a HAR file: what a browser recorded of a session (W3C's HTTP Archive 1.2)."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from lab_settings.messages import problem, shorten
from pydantic import BaseModel, Field, ValidationError

from load_lab.errors import UsageError
from load_lab.targets.mix import KEPT_HEADERS, SAFE_METHODS, Mix
from load_lab.targets.sources.templates import Template
from load_lab.targets.sources.traffic import Recorded, Traffic, encoded

_HINT = "Record one: the browser's developer tools, Network, Save all as HAR."
_HOSTS_SHOWN = 5
_DEFAULT_PORTS = {"http": 80, "https": 443}


class _Header(BaseModel):
    name: str
    value: str


class _Body(BaseModel):
    text: str | None = None


class _Request(BaseModel):
    method: str
    url: str
    headers: list[_Header] = []
    body: _Body | None = Field(default=None, alias="postData")


class _Response(BaseModel):
    # 0, or less, if there was none.
    status: int


class _Entry(BaseModel):
    request: _Request
    response: _Response


class _Log(BaseModel):
    entries: list[_Entry]


class _Archive(BaseModel):
    log: _Log


def read_har(
    path: Path,
    host: str,
    *,
    templates: Sequence[str | Template] = (),
    most: int = 100,
    writes: bool = False,
    named: Sequence[str] = (),
) -> Mix:
    """Return the mix of the requests to `host` (`example.org`, `127.0.0.1:8000`), with at most
    `most` addresses per operation.

    Without `writes` only GET and HEAD, and no bodies. `named` are operations that are in the mix
    although a word in them says that they write.

    Raises:
        UsageError: the file cannot be read, is no HAR file, or has no request that a load can send
            to the host.
    """
    entries = _read(path).log.entries
    if not entries:
        raise UsageError(f"{path} has no entries. {_HINT}")
    own = [entry for entry in entries if _host(entry.request.url) == host.lower()]
    if not own:
        raise UsageError(f"{path} has no request to {host}. Its hosts: {_hosts(entries)}.")
    traffic = Traffic(templates, most=most, writes=writes, named=named)
    for entry in own:
        traffic.add(_recorded(entry))
    try:
        operations = traffic.operations()
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    return Mix(source=str(path), operations=operations, left_out=traffic.left_out())


def _read(path: Path) -> _Archive:
    try:
        # Some tools write a byte order mark.
        document = json.loads(path.read_text(encoding="utf-8-sig"))
        return _Archive.model_validate(document)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise UsageError(
            f"{path} is no HAR file: {shorten(place)}: {problem(first)}. {_HINT}"
        ) from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON ({shorten(error)}). {_HINT}") from None


def _host(url: str) -> str | None:
    """Return host and port of an address, without the port that its scheme implies."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        return None
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return name if port in (None, _DEFAULT_PORTS[parts.scheme]) else f"{name}:{port}"


def _hosts(entries: Sequence[_Entry]) -> str:
    counts = Counter(host for entry in entries if (host := _host(entry.request.url)))
    return ", ".join(shorten(host) for host, _ in counts.most_common(_HOSTS_SHOWN)) or "none"


def _recorded(entry: _Entry) -> Recorded:
    request = entry.request
    parts = urlsplit(request.url)
    query = f"?{parts.query}" if parts.query else ""
    return Recorded(
        method=request.method,
        target=encoded((parts.path or "/") + query),
        status=entry.response.status,
        headers=tuple(sorted(_headers(request.headers).items())),
        body=request.body.text if request.body and request.method not in SAFE_METHODS else None,
    )


def _headers(headers: Sequence[_Header]) -> dict[str, str]:
    pairs = ((header.name.lower(), header.value) for header in headers)
    return {name: value for name, value in pairs if name in KEPT_HEADERS}
