"""Requests to the services of a stack."""

import ssl
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpx

from load_lab import __version__

# One for all that the lab sends: a site may end the session of another program.
USER_AGENT = f"load-lab/{__version__}"


@cache
def certificates() -> ssl.SSLContext:
    """Load the machine's CA certificates once: httpx loads them for each client, in 15 ms of CPU
    time, and a starting service is polled every 50 ms.
    """
    return ssl.create_default_context()


def get(
    url: str,
    *,
    timeout: float,
    headers: Mapping[str, str] | None = None,
    params: Mapping[str, str] | None = None,
) -> httpx.Response:
    """Like httpx.get, with the CA certificates loaded once."""
    return httpx.get(
        url, timeout=timeout, headers=_named(headers), params=params, verify=certificates()
    )


def client(base_url: str, headers: Mapping[str, str] | None = None, **options: Any) -> httpx.Client:
    """Like httpx.Client, with the CA certificates loaded once."""
    return httpx.Client(
        base_url=base_url, headers=_named(headers), verify=certificates(), **options
    )


def _named(headers: Mapping[str, str] | None) -> httpx.Headers:
    """Return the headers with the lab's User-Agent, unless they have one."""
    named = httpx.Headers({"User-Agent": USER_AGENT})
    named.update(headers or {})
    return named


def address(url: str) -> tuple[str, int]:
    """Return the host and the port of an http or https address."""
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
