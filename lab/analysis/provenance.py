"""Provenance of a result: machine, programs and time; writes results to results/."""

import json
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from lab.console import note
from lab.errors import LabError
from lab.host import preflight
from lab.host.cpus import choose_cpus, expand
from lab.host.noise import StealMeter, cpu_speed
from lab.paths import RESULTS, ROOT
from lab.settings import Settings
from lab.stack.engine import Engine
from lab.stack.inspect import query_backend

# History of the format:
# 1: first.
SCHEMA_VERSION = 1


@contextmanager
def facts(
    engine: Engine, settings: Settings, programs: dict[str, str] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield facts about the machine; those known only afterwards are added when the block ends.

    `programs` are versions of programs in addition to the stack's.

    `cpu_speed` is the speed of the target's CPUs before and after, see lab/host/noise.py.

    Raises:
        LabError: the backend runs with DEBUG on.
    """
    backend = query_backend(settings, engine.token())
    if backend["debug"]:
        raise LabError("The backend runs with DEBUG on, so results would be void. Unset DEBUG.")
    target = expand(choose_cpus(settings).target)
    document: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": host(settings, engine.name),
        "versions": engine.versions() | (programs or {}) | backend["versions"],
        "warnings": preflight.warnings(settings),
        "data": {n: v for n, v in settings.as_env().items() if n.startswith("LAB_DATA_")},
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
    path = RESULTS / f"{kind}-{datetime.now(UTC):%Y%m%d-%H%M%S}.json"
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
        "target_cpus": cpus.target,
        "load_cpus": cpus.load,
        "shared_cpus": cpus.shared,
        "commit": _commit(),
    }


def _commit() -> str | None:
    if not shutil.which("git"):
        return None
    process = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return process.stdout.strip() or None


def relative(path: Path) -> str:
    """Return the path relative to the project's folder."""
    return str(path.relative_to(ROOT))


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write the document atomically."""
    scratch = path.with_suffix(".new")
    scratch.write_text(json.dumps(document, indent=2) + "\n")
    scratch.replace(path)
