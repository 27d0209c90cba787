"""One request to a target, and what came back, limited in time and size; and several, one after the
other, until enough are accepted.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import httpx
from lab_settings.messages import shorten

from load_lab.errors import LabError
from load_lab.targets.mix import SAFE_METHODS, Method, Page
from load_lab.targets.seen_pages import page_of

T = TypeVar("T")

# Seconds for a request with its answer.
_TIMEOUT = 10.0
# Bytes of an answer that are read: the items at the beginning of a long list are not worth more.
_MOST_BYTES = 16_000_000
# Errors of a connection that the target closed while it was idle.
_CLOSED = (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError)

# What a failure shows of an answer, and the shortest header value that may be a secret in it.
_MOST_CHARACTERS = 200
_SHORTEST_SECRET = 6
_JSON_WEB_TOKEN = re.compile(r"eyJ[\w-]+(\.[\w-]+)*")


@dataclass(frozen=True)
class Exchange:
    """The answer to a request. `status` is None if there was none; `problem` is empty if it was
    2xx; `body` is empty unless it is JSON, or the page of a 2xx; `challenge` is the scheme of
    WWW-Authenticate, `location` the header of that name, `page` what a load compares, and
    `retry_after` the seconds after which a refused request may be sent again.
    """

    status: int | None = None
    problem: str = ""
    body: bytes = b""
    challenge: str = ""
    location: str = ""
    is_page: bool = False
    page: Page | None = None
    retry_after: float | None = None


@dataclass(frozen=True)
class Content:
    """The body of a request."""

    media_type: str
    text: str


def send(
    client: httpx.Client,
    method: Method,
    path: str,
    content: Content | None = None,
    headers: Mapping[str, str] | None = None,
) -> Exchange:
    """Send a request. Cookies of the answer are not stored: in a load, each client is new.

    One that writes is sent once, even if the connection was closed: it may have been received.

    Raises:
        LabError: the target accepts no connection.
    """
    cookies = httpx.Cookies(client.cookies)
    try:
        request = _request(client, method, path, content, headers or {})
        if method in SAFE_METHODS:
            return _send_again_if_closed(client, request)
        return _send(client, request)
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise LabError(
            f"{client.base_url} accepts no connection for {method} {shorten(path)} ({error}). "
            "Start the target, or correct its address."
        ) from None
    except httpx.TimeoutException:
        return Exchange(problem=f"no complete answer within {_TIMEOUT:.0f} s")
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeEncodeError) as error:
        return Exchange(problem=f"no valid answer ({type(error).__name__}: {shorten(error)})")
    finally:
        client.cookies = cookies


def _request(
    client: httpx.Client,
    method: Method,
    path: str,
    content: Content | None,
    headers: Mapping[str, str],
) -> httpx.Request:
    own = dict(headers)
    if content:
        own["content-type"] = content.media_type
    body = content.text.encode() if content else None
    return client.build_request(method, path, content=body, headers=own, timeout=_TIMEOUT)


def _send_again_if_closed(client: httpx.Client, request: httpx.Request) -> Exchange:
    try:
        return _send(client, request)
    except _CLOSED:
        return _send(client, request)


def _send(client: httpx.Client, request: httpx.Request) -> Exchange:
    deadline = time.monotonic() + _TIMEOUT
    response = client.send(request, stream=True, follow_redirects=False)
    with closing(response):
        body = _read(response, deadline)
    status = response.status_code
    location = response.headers.get("location", "")
    media_type = response.headers.get("content-type", "")
    is_page = response.is_success and "html" in media_type
    body = body if "json" in media_type or is_page else b""
    if response.is_success:
        page = page_of(body) if is_page else None
        return Exchange(status, body=body, location=location, is_page=is_page, page=page)
    if response.has_redirect_location:
        return Exchange(status, f"redirects to {shorten(location)}", location=location)
    challenge = response.headers.get("www-authenticate", "").partition(" ")[0]
    problem = f"answered {status}"
    return Exchange(status, problem, body, challenge, retry_after=_seconds_to_wait(response))


def _seconds_to_wait(response: httpx.Response) -> float | None:
    """Return the seconds after which the target asks for the request again, if it does."""
    text = response.headers.get("retry-after", "")
    return float(text) if text.isdecimal() else None


def _read(response: httpx.Response, deadline: float) -> bytes:
    """Read the body up to the limit. An endless one (server-sent events) ends with the time."""
    body = bytearray()
    for chunk in response.iter_bytes():
        body += chunk
        if len(body) >= _MOST_BYTES:
            break
        if time.monotonic() > deadline:
            raise httpx.ReadTimeout("The answer does not end.")
    return bytes(body)


def failure_text(exchange: Exchange, sent: Iterable[str]) -> str:
    """Return the problem with the beginning of the answer, without the values of the headers that
    were sent: a target may echo them.
    """
    text = " ".join(exchange.body.decode(errors="replace").split())
    words = {word for value in sent for word in (value, *value.split())}
    for word in sorted(words, key=len, reverse=True):
        if len(word) >= _SHORTEST_SECRET:
            text = text.replace(word, "…")
    text = _JSON_WEB_TOKEN.sub("…", text)[:_MOST_CHARACTERS]
    return f"{exchange.problem}: {text}" if text else exchange.problem


@dataclass
class Tries(Generic[T]):
    """What was sent, and how the last attempt ended: an attempt is an address, or a body."""

    accepted: list[T] = field(default_factory=list)
    last: Exchange | None = None
    is_over: bool = False
    _successes: Counter[str] = field(default_factory=Counter)
    _failures: Counter[str] = field(default_factory=Counter)

    def run(
        self,
        send: Callable[[T], Exchange],
        attempts: Iterable[T],
        *,
        enough: int,
        most_failures: int,
        origin: str = "",
    ) -> None:
        """Send attempts until `enough` are accepted in all, or one has no answer: the next would
        take as long. The attempts of an `origin` are given up once so many more have failed than
        succeeded.
        """
        for attempt in attempts:
            is_given_up = self._failures[origin] - self._successes[origin] >= most_failures
            if len(self.accepted) >= enough or self.is_over or is_given_up:
                return
            self.last = send(attempt)
            if self.last.problem or self.is_over:
                self._failures[origin] += 1
            else:
                self._successes[origin] += 1
                self.accepted.append(attempt)
            self.is_over |= self.last.status is None

    def has_accepted(self, origin: str) -> bool:
        return bool(self._successes[origin])
