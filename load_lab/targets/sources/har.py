"""A mix from a HAR file: what a browser recorded of a session (W3C's HTTP Archive 1.2)."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lab_settings.messages import problem, shorten
from pydantic import BaseModel, Field, ValidationError

from load_lab.errors import UsageError
from load_lab.targets.mix import KEPT_HEADERS, SAFE_METHODS, Mix
from load_lab.targets.sources.paths import Template
from load_lab.targets.sources.traffic import Recorded, Traffic, below, encoded

_HINT = "Record one: the browser's developer tools, Network, Save all as HAR."
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,20}:")
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
    # Of Chrome: "memory" or "disk".
    from_cache: Any = Field(default=None, alias="_fromCache")


class _Log(BaseModel):
    entries: list[Any]


class _Archive(BaseModel):
    log: _Log


def read_har(
    path: Path,
    url: str,
    *,
    templates: Sequence[str | Template] = (),
    most: int = 100,
    writes: bool = False,
    named: Sequence[str] = (),
    leave_out: Sequence[str] = (),
) -> Mix:
    """Return the mix of the requests to the target at `url`, with at most `most` addresses per
    operation. Every other entry is counted in what is left out.

    Without `writes` only GET and HEAD, and no bodies. `named` are operations that are in the mix
    although a word in them says that they write.

    Raises:
        UsageError: the file cannot be read, is no HAR file, or has no request that a load can send
            to the host.
    """
    entries = _read(path).log.entries
    if not entries:
        raise UsageError(f"{path} has no entries. {_HINT}")
    traffic = Traffic(templates, most=most, writes=writes, named=named, leave_out=leave_out)
    base_path = urlsplit(url).path.rstrip("/")
    for number, entry in enumerate(map(_entry, entries), start=1):
        if isinstance(entry, str):
            traffic.leave_out(f"entry {number}", entry)
        elif reason := _other(entry, url):
            traffic.leave_out(*reason, entry.response.status)
        else:
            traffic.add(_recorded(entry, base_path))
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
        raise UsageError(f"{path} is no HAR file: {_problem(error)}. {_HINT}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON ({shorten(error)}). {_HINT}") from None


def _entry(document: Any) -> _Entry | str:
    """Return an entry, or why it can't be read."""
    try:
        return _Entry.model_validate(document)
    except ValidationError as error:
        return _problem(error)


def _problem(error: ValidationError) -> str:
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"])) or "the whole"
    return f"{shorten(place)}: {problem(first)}"


def _other(entry: _Entry, url: str) -> tuple[str, str] | None:
    """Return name and reason of an entry that is no request to the target."""
    host, scheme = _host(entry.request.url), _SCHEME.match(entry.request.url)
    if host is None:
        return scheme[0] if scheme else "no address", "no HTTP request of this server"
    if host != _host(url):
        return shorten(host), "another host"
    base_path = urlsplit(url).path.rstrip("/")
    if not f"{urlsplit(entry.request.url).path}/".startswith(f"{base_path}/"):
        return host, "outside of the target's path"
    return (host, "from the browser's cache") if entry.from_cache else None


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


def _recorded(entry: _Entry, base_path: str) -> Recorded:
    request = entry.request
    parts = urlsplit(request.url)
    query = f"?{parts.query}" if parts.query else ""
    return Recorded(
        method=request.method,
        target=below(base_path, encoded((parts.path or "/") + query)),
        status=entry.response.status,
        headers=tuple(sorted(_headers(request.headers).items())),
        body=request.body.text if request.body and request.method not in SAFE_METHODS else None,
    )


def _headers(headers: Sequence[_Header]) -> dict[str, str]:
    pairs = ((header.name.lower(), header.value) for header in headers)
    return {name: value for name, value in pairs if name in KEPT_HEADERS}
