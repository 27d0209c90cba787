"""Choose the engine: the configured one, or the one that this machine can run."""

import subprocess

from load_lab.console import note
from load_lab.errors import LabError
from load_lab.paths import current_state
from load_lab.settings import Settings
from load_lab.stack.docker import DockerEngine, compose_argv
from load_lab.stack.engine import Engine
from load_lab.stack.native import NativeEngine


def choose_engine(settings: Settings) -> Engine:
    """Return the engine of the running stack; when none runs, the one that `settings` select.

    Raises:
        LabError: the selected engine can't run here, or another one is running.
    """
    engines: tuple[Engine, ...] = (NativeEngine(current_state()), DockerEngine())
    for engine in engines:
        if engine.settings() is not None:
            return _check_engine(engine, settings)
    native, docker = engines
    if settings.LAB_ENGINE == "native":
        return native
    reason = docker_problem()
    if settings.LAB_ENGINE == "docker" and reason:
        raise LabError(f"LAB_ENGINE=docker, but {reason}. Start it, or use LAB_ENGINE=native.")
    if settings.LAB_ENGINE == "auto":
        note(f"Engine: {'native, because ' + reason if reason else 'docker, which answers here'}.")
    return native if reason else docker


def _check_engine(running: Engine, settings: Settings) -> Engine:
    if settings.LAB_ENGINE not in ("auto", running.name):
        raise LabError(
            f"LAB_ENGINE={settings.LAB_ENGINE}, but a stack of the {running.name} engine runs. "
            f"Stop it first: LAB_ENGINE={running.name} lab down"
        )
    return running


def docker_problem() -> str | None:
    """Return why the docker engine can't run the stack here; None when it can."""
    if not _succeeds(["docker", "info"]):
        return "no Docker engine answers"
    if not _succeeds([*compose_argv(), "version"]):
        return "docker has no compose plugin"
    images = _images()
    if any(not _succeeds(["docker", "image", "inspect", image]) for image in images) and not (
        _succeeds(["docker", "manifest", "inspect", images[0]])
    ):
        return "its images are neither here nor can they be pulled"
    return None


def _images() -> list[str]:
    """Return the images that compose would pull; images that it builds need only their base
    image.
    """
    result = subprocess.run(
        [*compose_argv(), "config", "--images"], capture_output=True, text=True, check=False
    )
    return [name for name in result.stdout.split() if not name.startswith("load-lab-")]


def _succeeds(argv: list[str]) -> bool:
    try:
        return subprocess.run(argv, capture_output=True, timeout=30, check=False).returncode == 0
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False
