"""The backend's environment variables: the lab's settings (lab_settings) and the backend's own.

A setting that is not set has its default. The file BACKEND_SETTINGS_FILE, if given, takes
precedence over the environment; a running server reads it again on reload.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from lab_settings.declaration import Declaration
from lab_settings.messages import SettingsError, parse
from lab_settings.secret_reader import SecretError, read_secret


class EnvError(ImproperlyConfigured):
    """A variable is missing or has an invalid value."""


def lab_settings() -> Declaration:
    """Return the active settings. Order of precedence: settings file, environment, defaults.

    Raises:
        EnvError: a setting has an invalid value.
    """
    variables = {**os.environ, **_settings_file()}
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


def cpus(name: str) -> set[int]:
    """Return the CPU numbers of the list `name`, such as 0-2,5; empty if it is empty or not set.

    Reads only the environment, which has the CPUs that `lab` chose. The settings file has the
    requested ones.
    """
    numbers: set[int] = set()
    for part in filter(None, os.environ.get(name, "").split(",")):
        first, _, last = part.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers


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


def _settings_file() -> dict[str, str]:
    """Return the settings file's values.

    The file is read on every call, since gunicorn's master keeps this module loaded over a reload.
    """
    name = os.environ.get("BACKEND_SETTINGS_FILE")
    return dict(_assignments(Path(name))) if name else {}


def _assignments(path: Path) -> Iterator[tuple[str, str]]:
    for line in path.read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not name.startswith("#"):
            yield name, value
