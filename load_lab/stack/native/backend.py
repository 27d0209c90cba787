"""The Django project in the native engine: its commands, its data, its reload."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence

import psutil
from lab_settings.settings_file import write_settings

from load_lab.console import step
from load_lab.errors import LabError
from load_lab.paths import State
from load_lab.settings import Settings
from load_lab.stack.native import die_with_parent
from load_lab.stack.native.services.start_order import backend_env
from load_lab.stack.native.supervision import Supervision, is_alive, mark, wait_for

# Most old workers have ended by then.
_SECONDS_BEFORE_FREEING = 2


def run(
    command: Sequence[str],
    settings: Settings,
    state: State,
    *,
    show: bool = False,
    env: Mapping[str, str] | None = None,
) -> None:
    """Run a command in `backend/` with the stack's environment; `python` is that of the backend.

    With `show`, its output goes to the lab's standard error: progress is for the user, while
    standard output belongs to the result of the calling command.

    Raises:
        LabError: the command failed; the message has its output, unless it was shown.
    """
    # The running stack may not have these settings yet.
    file = state.run / "command-settings.env"
    write_settings(file, settings.as_env())
    own = {"BACKEND_SETTINGS_FILE": str(file), **mark(state), **(env or {})}
    environ = {**os.environ, **backend_env(settings, state), **own}
    output = (
        {"stdout": sys.stderr} if show else {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    )
    result = subprocess.run(
        [*die_with_parent.argv_prefix(), *command],
        cwd=state.backend,
        env=environ,
        text=True,
        check=False,
        **output,
    )
    if result.returncode:
        text = "see above" if show else (result.stderr or result.stdout).strip()
        raise LabError(f"`{' '.join(command)}` failed in backend/:\n{text}")


def load(settings: Settings, state: State) -> None:
    """Create the roles and the database, and migrate it; load the data when there is none."""
    # Every commit has it, so the backend of a compared one is prepared in its own way.
    run(["bin/init"], settings, state, show=True)


def load_new_data(before: Settings, after: Settings, state: State) -> None:
    """Load the workbench's tables and data when it is switched on, before the backend has its
    routes.
    """
    if before.LAB_WORKBENCH == "off" and after.LAB_WORKBENCH == "on":
        load(after, state)


def reload_workers(supervision: Supervision, settings: Settings, free: Callable[[], None]) -> None:
    """Reload gunicorn with HUP: the master keeps the socket, new workers read the settings file,
    and old workers finish their requests.

    `free` is called repeatedly while old workers still run.
    """
    with step("Restarting the backend's workers"):
        pid = supervision.pid("backend")
        if not pid:
            raise LabError(
                "The backend is not running. `lab up` starts it; `lab logs backend` shows why."
            )
        try:
            _replace_workers(psutil.Process(pid), supervision, settings, free)
        except psutil.NoSuchProcess:
            raise LabError(
                "The backend ended instead of taking its settings. `lab logs backend` shows why."
            ) from None


def _replace_workers(
    master: psutil.Process, supervision: Supervision, settings: Settings, free: Callable[[], None]
) -> None:
    old, reload_times = set(master.children()), [time.monotonic()]
    supervision.signal_service("backend", signal.SIGHUP)

    def has_new_workers() -> bool:
        if time.monotonic() - reload_times[-1] > _SECONDS_BEFORE_FREEING:
            reload_times.append(time.monotonic())
            free()
        new = set(master.children()) - old
        return len(new) == settings.LAB_WORKERS and not any(map(is_alive, old))

    wait_for(
        has_new_workers, seconds=settings.LAB_TIMEOUT + 10, what="the new workers of the backend"
    )
