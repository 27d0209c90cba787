"""Report what runs, and the active settings: from the services, not from a file."""

from dataclasses import asdict
from typing import Any

from load_lab.errors import LabError
from load_lab.stack.engine import Engine
from load_lab.stack.latency import measure_running
from load_lab.stack.reported import query_backend, query_nginx


def stack_status(engine: Engine) -> dict[str, Any]:
    """Return engine, services, active settings and delays; `settings` is empty when nothing
    runs.
    """
    return {
        "engine": engine.name,
        "services": [asdict(service) for service in engine.services()],
        "settings": active_settings(engine),
        "latency": measure_running(engine),
    }


def active_settings(engine: Engine) -> dict[str, Any]:
    """Return the settings that backend and Nginx report; the others are those of the stack's
    start.
    """
    settings = engine.settings()
    if settings is None:
        return {}
    start_settings = settings.model_dump()
    if settings.LAB_REFERENCE_APP == "off":
        return start_settings
    try:
        active: dict[str, Any] = query_backend(settings, engine.token())["settings"]
        active |= query_nginx(settings)
    except (LabError, OSError) as error:
        return start_settings | {"note": f"not confirmed: {error}"}
    return start_settings | active
