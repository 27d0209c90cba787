"""What runs, and which settings are really active: asked of the services, not of a file."""

from dataclasses import asdict
from typing import Any

import httpx

from lab.engine import Engine


def stack_status(engine: Engine) -> dict[str, Any]:
    """Engine, services, and the active settings; `settings` is empty when nothing runs."""
    return {
        "engine": engine.name,
        "services": [asdict(service) for service in engine.services()],
        "settings": active_settings(engine),
    }


def active_settings(engine: Engine) -> dict[str, Any]:
    """The settings as the backend answers them, over the rest that the stack was started with."""
    settings = engine.settings()
    if settings is None:
        return {}
    started_with = settings.model_dump()
    try:
        answer = httpx.get(
            f"{settings.backend_url}/lab/settings",
            headers={"X-Lab-Token": engine.token()},
            timeout=10,
        )
        said: dict[str, Any] = answer.raise_for_status().json()["settings"]
    except (httpx.HTTPError, OSError):
        return started_with | {"note": "the backend does not answer; these are not confirmed"}
    return started_with | said
