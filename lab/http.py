"""Requests to the services of a stack."""

import ssl
from collections.abc import Mapping
from functools import cache

import httpx


@cache
def certificates() -> ssl.SSLContext:
    """The machine's authorities, read once: httpx reads them for each client, which takes 15 ms of
    a CPU, and a service that starts is looked for every 50 ms.
    """
    return ssl.create_default_context()


def get(
    url: str,
    *,
    timeout: float,
    headers: Mapping[str, str] | None = None,
    params: Mapping[str, str] | None = None,
) -> httpx.Response:
    """As httpx.get."""
    return httpx.get(url, timeout=timeout, headers=headers, params=params, verify=certificates())
