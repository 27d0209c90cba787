"""Requests to the services of a stack."""

import ssl
from collections.abc import Mapping
from functools import cache
from urllib.parse import urlsplit

import httpx


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
    return httpx.get(url, timeout=timeout, headers=headers, params=params, verify=certificates())


def address(url: str) -> tuple[str, int]:
    """Return the host and the port of an http or https address."""
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
