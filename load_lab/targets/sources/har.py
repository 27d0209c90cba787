"""The requests of a HAR file: what a browser recorded of a session (W3C's HTTP Archive 1.2)."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lab_settings.messages import problem, shorten
from pydantic import BaseModel, Field, ValidationError

from load_lab.errors import UsageError
from load_lab.targets.mix import KEPT_HEADERS, SAFE_METHODS, LeftOut
from load_lab.targets.sources.described import Observed
from load_lab.targets.sources.paths import below
from load_lab.targets.sources.traffic import encoded, host_of

_HINT = "Record one: the browser's developer tools, Network, Save all as HAR."
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,20}:")


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


def read_har(path: Path, url: str) -> Iterator[Observed | LeftOut]:
    """Yield the requests to the target at `url`; every other entry is left out.

    Raises:
        UsageError: the file cannot be read, is no HAR file, or has no entries.
    """
    entries = _read(path).log.entries
    if not entries:
        raise UsageError(f"{path} has no entries. {_HINT}")
    for number, document in enumerate(entries, start=1):
        try:
            yield _observed(_Entry.model_validate(document), url)
        except ValidationError as error:
            yield LeftOut(name=f"entry {number}", reason=_problem(error))


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


def _problem(error: ValidationError) -> str:
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"])) or "the whole"
    return f"{shorten(place)}: {problem(first)}"


def _observed(entry: _Entry, url: str) -> Observed | LeftOut:
    request, status = entry.request, entry.response.status
    host, scheme = host_of(request.url), _SCHEME.match(request.url)
    if host is None:
        name = scheme[0] if scheme else "no address"
        return LeftOut(name=name, reason="no HTTP request of this server", status=status)
    if host != host_of(url):
        return LeftOut(name=shorten(host), reason="another host", status=status)
    parts = urlsplit(request.url)
    path = below(urlsplit(url).path.rstrip("/"), parts.path or "/")
    if path is None:
        return LeftOut(name=host, reason="outside of the target's path", status=status)
    if entry.from_cache:
        return LeftOut(name=host, reason="from the browser's cache", status=status)
    return Observed(
        method=request.method,
        target=encoded(path + (f"?{parts.query}" if parts.query else "")),
        status=status,
        headers=tuple(sorted(_headers(request.headers).items())),
        body=request.body.text if request.body and request.method not in SAFE_METHODS else None,
    )


def _headers(headers: Sequence[_Header]) -> dict[str, str]:
    pairs = ((header.name.lower(), header.value) for header in headers)
    return {name: value for name, value in pairs if name in KEPT_HEADERS}
