"""Provenance of a result: machine, programs and time; writes results to results/."""

import hashlib
import json
import platform
import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
from lab_settings.messages import shorten
from lab_settings.types import cpu_numbers
from pydantic import BaseModel, ConfigDict
from pydantic_core import from_json

from load_lab.console import note
from load_lab.errors import UsageError
from load_lab.machine import preflight
from load_lab.machine.cpus import choose_cpus
from load_lab.machine.noise import StealMeter, cpu_speed
from load_lab.paths import lab_file, project
from load_lab.settings import Settings
from load_lab.stack.engine import Engine

# Of every result.
SCHEMA_VERSION = 1

# No metric is larger. A larger number in a file would only fail when it is formatted or drawn.
_MAX_NUMBER = 1e18


class Host(BaseModel):
    """The machine of a result, and how target and generator share it."""

    model_config = ConfigDict(frozen=True, extra="allow")

    engine: str | None = None
    cpus: int | None = None
    memory_bytes: int | None = None
    system: str | None = None
    target_cpus: str | None = None
    load_cpus: str | None = None
    shared_cpus: bool = False
    commit: str | None = None


@contextmanager
def facts(
    engine: Engine,
    settings: Settings,
    reported: Mapping[str, Any],
    programs: Mapping[str, str] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield facts about the machine; those known only afterwards are added when the block ends.

    `reported` is what the target says of itself; `programs` are versions of programs in addition to
    its own and the stack's.

    `cpu_speed` is the speed of the target's CPUs before and after, see load_lab/machine/noise.py.
    """
    versions = {**(programs or {}), **reported.get("versions", {})}
    target = cpu_numbers(choose_cpus(settings).target)
    document: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": host(settings, engine.name),
        "versions": engine.versions() | versions,
        "warnings": preflight.warnings(settings),
        "data": reported.get("data", {}),
    }
    for warning in document["warnings"]:
        note(f"Warning: {warning}.")
    steal, speed = StealMeter(), cpu_speed(target)
    yield document
    document["cpu_speed"] = [round(speed, 2), round(cpu_speed(target), 2)]
    document["steal"] = round(steal.share(), 4)


def store_result(
    kind: str,
    document: dict[str, Any],
    draw: Callable[[dict[str, Any], Path], Path] | None = None,
) -> dict[str, Any]:
    """Write the document and its picture to results/; return it with the names of its files."""
    path = project().results / f"{kind}-{datetime.now(UTC):%Y%m%d-%H%M%S}.json"
    files = {"result": relative(path)}
    if draw is not None:
        files["picture"] = relative(draw(document, path.with_suffix("")))
    result = {**document, "files": files}
    write_json(path, result)
    return result


def host(settings: Settings, engine: str) -> dict[str, Any]:
    """Describe the machine, and how target and generator share it."""
    cpus = choose_cpus(settings)
    return {
        "engine": engine,
        "cpus": psutil.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "system": platform.platform(),
        "machine": _machine(),
        "target_cpus": cpus.target,
        "load_cpus": cpus.load,
        "shared_cpus": cpus.shared,
        "commit": _commit(),
    }


def _machine() -> str:
    """Return what tells this machine from others, without its name or address."""
    names = f"{platform.node()} {uuid.getnode()}"
    return hashlib.sha256(names.encode()).hexdigest()[:12]


def _commit() -> str | None:
    if not shutil.which("git"):
        return None
    process = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=lab_file(),
        capture_output=True,
        text=True,
        check=False,
    )
    return process.stdout.strip() or None


def relative(path: Path) -> str:
    """Return the path relative to the project's folder."""
    return project().relative(path)


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object of a file.

    Raises:
        ValueError: the file can't be read, or is not a JSON object; the message has the reason.
    """
    try:
        document = from_json(path.read_bytes(), allow_inf_nan=False)
    except OSError as error:
        raise ValueError(str(error.strerror)) from None
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise ValueError("not a JSON object")
    _check_numbers(document)
    return document


def require_format(document: dict[str, Any], path: Path) -> None:
    """Check that this lab reads the format of a stored result.

    Raises:
        ValueError: the result does not name its format.
        UsageError: it is of another one.
    """
    if "schema_version" not in document:
        raise ValueError("it has no schema_version")
    version = document["schema_version"]
    if version != SCHEMA_VERSION or isinstance(version, bool):
        raise UsageError(
            f"{path} has schema version {shorten(version)}; this lab reads {SCHEMA_VERSION}. "
            "Nothing was changed. Use the lab that wrote it: its commit stands in the file."
        )


def _check_numbers(value: Any) -> None:
    if isinstance(value, int | float) and abs(value) > _MAX_NUMBER:
        raise ValueError(f"a number is larger than {_MAX_NUMBER:g}")
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            _check_numbers(each)


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write the document atomically."""
    scratch = path.with_suffix(".new")
    scratch.write_text(json.dumps(document, indent=2) + "\n")
    scratch.replace(path)
