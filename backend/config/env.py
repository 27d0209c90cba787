"""The backend's environment: its settings (lab_settings), and what is the backend's alone.

A setting that is not set has its default. BACKEND_SETTINGS_FILE, where it is given, goes over the
environment: a running server reads it again on reload.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from lab_settings.declaration import Declaration
from lab_settings.messages import SettingsError, parse


class EnvError(ImproperlyConfigured):
    """A variable is missing, or has a value that is not known."""


def lab_settings() -> Declaration:
    """The settings in force: the settings file over the environment over the defaults.

    Raises:
        EnvError: one has a value that is not known.
    """
    known = {**os.environ, **_settings_file()}
    values = {name: known[name] for name in Declaration.model_fields if name in known}
    try:
        return parse(Declaration, values)
    except SettingsError as error:
        raise EnvError(str(error)) from None


def text(name: str) -> str:
    """The variable `name`.

    Raises:
        EnvError: it is not set.
    """
    value = os.environ.get(name)
    if value is None:
        raise EnvError(f"{name} is not set; `lab` and the compose files set it.")
    return value


def is_asgi() -> bool:
    """Whether this process was loaded to be called by ASGI (config/asgi.py)."""
    return os.environ.get("BACKEND_INTERFACE") == "asgi"


def address(name: str) -> tuple[str, str] | None:
    """Host and port of the variable `name`, written host:port; None where it is not set."""
    host, _, port = os.environ.get(name, "").rpartition(":")
    return (host, port) if host else None


def role() -> str:
    """Which server this process is of (config/serving.py): `backend`, or `beside` it."""
    return os.environ.get("BACKEND_ROLE", "backend")


def metrics_folder() -> Path | None:
    """Where the processes of this process' server count; None outside of one."""
    folder = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    return Path(folder) if folder else None


def cpus(name: str) -> set[int]:
    """The CPU numbers of the list `name`, such as 0-2,5; none where it is empty or not set.

    Of the environment alone: the settings file has what was asked for, not what `lab` chose.
    """
    found: set[int] = set()
    for part in filter(None, os.environ.get(name, "").split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def secret(name: str) -> str:
    """The secret `name`, from its file in BACKEND_SECRETS_DIR. There is no default.

    Raises:
        EnvError: the file can't be read.
    """
    folder = text("BACKEND_SECRETS_DIR")
    try:
        return Path(folder, name).read_text().strip()
    except OSError as error:
        raise EnvError(
            f"The secret {name} can't be read in BACKEND_SECRETS_DIR={folder} ({error.strerror}). "
            f"Make it: python -m config.secrets {folder}"
        ) from None


def _settings_file() -> dict[str, str]:
    """Read each time: gunicorn's master keeps this module over a reload."""
    name = os.environ.get("BACKEND_SETTINGS_FILE")
    return dict(_assignments(Path(name))) if name else {}


def _assignments(path: Path) -> Iterator[tuple[str, str]]:
    for line in path.read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not name.startswith("#"):
            yield name, value
