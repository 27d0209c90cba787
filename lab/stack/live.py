"""Asking the running services what they run with."""

from typing import Any

import httpx

from lab.errors import LabError
from lab.settings import Settings


def ask_backend(settings: Settings, token: str) -> dict[str, Any]:
    """What the backend says of itself: settings, server, versions, debug.

    Raises:
        LabError: it does not answer.
    """
    return _asked(f"{settings.backend_url}/lab/settings", {"X-Lab-Token": token})


def ask_latency(settings: Settings, token: str) -> dict[str, Any]:
    """Round trips from the backend to Postgres in ms, a new connection's, and how it logs in.

    Raises:
        LabError: it does not answer.
    """
    # Some tens of delays, of up to a second each.
    url = f"{settings.backend_url}/lab/latency"
    return _asked(url, {"X-Lab-Token": token}, seconds=90)


def ask_nginx(settings: Settings) -> dict[str, Any]:
    """The settings that Nginx runs with, as its own configuration answers them.

    Raises:
        LabError: it does not answer.
    """
    return _asked(f"{settings.nginx_status_url}/settings")


def _asked(url: str, headers: dict[str, str] | None = None, seconds: float = 10) -> dict[str, Any]:
    try:
        return dict(httpx.get(url, headers=headers, timeout=seconds).raise_for_status().json())
    except httpx.HTTPStatusError as error:
        answer = error.response
        raise LabError(
            f"{url} answers {answer.status_code}: {answer.text[:200]}. See `lab logs`."
        ) from None
    except (httpx.HTTPError, ValueError) as error:
        raise LabError(f"{url} does not answer ({error}). See `lab logs`.") from None
