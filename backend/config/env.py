"""The lab's settings, and the backend's own environment variables.

The settings come from one place: the file BACKEND_SETTINGS_FILE, which a running server reads again
on reload, or where there is none (docker) the environment. One that is not set has its default.
"""

import os
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from lab_settings.declaration import Declaration
from lab_settings.messages import SettingsError, parse
from lab_settings.secret_reader import SecretError, read_secret
from lab_settings.settings_file import read_settings


class EnvError(ImproperlyConfigured):
    """A variable is missing or has an invalid value."""


def lab_settings() -> Declaration:
    """Return the active settings.

    Raises:
        EnvError: a setting has an invalid value.
    """
    # Read at each call: gunicorn's master keeps this module over a reload.
    file = os.environ.get("BACKEND_SETTINGS_FILE")
    variables = read_settings(Path(file)) if file else os.environ
    values = {name: variables[name] for name in Declaration.model_fields if name in variables}
    try:
        return parse(Declaration, values)
    except SettingsError as error:
        raise EnvError(str(error)) from None


def text(name: str) -> str:
    """Return the variable `name`.

    Raises:
        EnvError: it is not set.
    """
    value = os.environ.get(name)
    if value is None:
        raise EnvError(f"{name} is not set. `lab` and the compose files set it.")
    return value


def is_asgi() -> bool:
    """Return whether this process was loaded as an ASGI application (config/asgi.py)."""
    return os.environ.get("BACKEND_INTERFACE") == "asgi"


def address(name: str) -> tuple[str, str] | None:
    """Return host and port of the variable `name` (host:port), or None if it is not set."""
    host, _, port = os.environ.get(name, "").rpartition(":")
    return (host, port) if host else None


def role() -> str:
    """Return this process's server (config/server/start.py): `backend`, or `beside`, the second."""
    return os.environ.get("BACKEND_ROLE", "backend")


def metrics_folder() -> Path | None:
    """Return the folder of the server's metrics files, or None outside a server."""
    folder = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    return Path(folder) if folder else None


def secret(name: str) -> str:
    """Return the secret `name` from its file in BACKEND_SECRETS_DIR. It has no default.

    Raises:
        EnvError: the file can't be read, or is empty or cut.
    """
    folder = text("BACKEND_SECRETS_DIR")
    try:
        return read_secret(Path(folder, name))
    except SecretError as error:
        raise EnvError(str(error)) from None
    except OSError as error:
        raise EnvError(
            f"The secret {name} can't be read in BACKEND_SECRETS_DIR={folder} ({error.strerror}). "
            f"Create it: python -m config.secrets {folder}"
        ) from None
