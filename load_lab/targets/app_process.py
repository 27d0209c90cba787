"""Start a declared target on the target's CPUs, and stop it after its loads."""

import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from load_lab.console import note, step
from load_lab.errors import LabError
from load_lab.machine.cpus import choose_cpus
from load_lab.machine.processes import listener
from load_lab.settings import Settings
from load_lab.stack import http
from load_lab.stack.native.die_with_parent import argv_prefix
from load_lab.stack.native.started_processes import Process, Processes, processes
from load_lab.stack.native.supervision import port_is_open, wait_for
from load_lab.targets.cache_in_front import FrontPlan, check_cache, left_out_of_cache, plan_front
from load_lab.targets.commits import checkout
from load_lab.targets.credentials import fill_variables
from load_lab.targets.declared import DeclaredTarget, Front
from load_lab.targets.file import Command, Start, Texts
from load_lab.targets.instances import InstanceNames, filled, instance_names
from load_lab.targets.mix import read_mix

# For commands around a start: they may install packages, or copy a database.
_COMMAND_SECONDS = 1800
_LAST_LINES = 10
_CONNECT_SECONDS = 0.5
# `docker run` and `docker compose up` stop their containers within 10 s.
_STOP_SECONDS = 15


def ready(target: DeclaredTarget, settings: Settings) -> AbstractContextManager[DeclaredTarget]:
    """Return the target as `running` does, but one that runs already is not started."""
    if is_open(target):
        target = replace(target, file=target.file.model_copy(update={"start": None}))
    return running(target, settings)


@contextmanager
def running(
    target: DeclaredTarget, settings: Settings, instance: InstanceNames | None = None
) -> Iterator[DeclaredTarget]:
    """Yield the target once it is ready; for the block, what [start] and [cache] say runs.

    Raises:
        UsageError: a variable, an option or an operation is missing.
        LabError: it does not start, or something else listens at its address.
    """
    instance = instance or instance_names(target)
    target = filled(target, instance)
    cache, start = target.file.cache, target.file.start
    mix = read_mix(target.mix_path) if cache else None
    if cache and mix:
        check_cache(target.file, cache, mix, target.path)
    with (
        _code(target, instance) as folder,
        TemporaryDirectory() as pages,
        processes(instance.state, _STOP_SECONDS) as group,
    ):
        started = replace(target, check=group.check)
        if start:
            _require_free(target)
            process = _process(start, target, folder, settings)
            group.start(process)
            started = replace(started, log=group.log(process.name))
        with step(f"Waiting for {target.name}"):
            _require_ready(started, instance)
        if cache and mix:
            left_out = left_out_of_cache(target.file, cache, mix)
            for name, reason in left_out.items():
                note(f"{name} {reason}: not cached")
            plan = plan_front(target.file, cache, settings, Path(pages), left_out)
            started = replace(started, front=_start_front(plan, group), uncached=left_out)
        yield started


def _require_ready(target: DeclaredTarget, instance: InstanceNames) -> None:
    """Wait for the target.

    Raises:
        LabError: it is not ready; if nothing listens at the port of a second instance, why.
    """
    try:
        target.require_ready()
    except LabError as error:
        if instance.number == 1 or is_open(target):
            raise
        raise LabError(
            f"Nothing listens at {target.url}: {{port}} of [start] in {target.path} is "
            f"{instance.values['port']} there. Does its command listen at that port? {error}"
        ) from None


def _start_front(plan: FrontPlan, group: Processes) -> Front:
    def is_up() -> bool:
        group.check()
        return port_is_open(*http.address(plan.url))

    group.start(plan.process)
    wait_for(is_up, seconds=10, what="the cache in front of the target")
    return Front(plan.url, group.pids[plan.process.name])


def _process(start: Start, target: DeclaredTarget, folder: Path, settings: Settings) -> Process:
    """Return the target's process; its command `prepare` has run."""
    env = environment(start)
    if start.prepare:
        with step(f"Preparing {target.name}"):
            _run(start.prepare, "The command prepare of [start]", folder, env)
    argv = [*argv_prefix(), *_argv(start, target, folder)]
    cpus = choose_cpus(settings).target
    return Process(f"target-{target.path.stem}", argv, cpus, folder, env)


def _code(target: DeclaredTarget, instance: InstanceNames) -> AbstractContextManager[Path]:
    """Return the folder with the target's code: the user's, or that of a commit."""
    if target.commit:
        return checkout(target.start_folder, target.commit, instance.number)
    return nullcontext(target.start_folder)


def is_open(target: DeclaredTarget) -> bool:
    """Return whether a program listens at the target's address; not if the host is unknown."""
    try:
        socket.create_connection(http.address(target.url), timeout=_CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


def put_data_back(target: DeclaredTarget, instance: InstanceNames | None = None) -> None:
    """Run the command of [reset], if the target's file has one.

    Raises:
        LabError: it failed.
    """
    file = filled(target, instance or instance_names(target)).file
    if file.reset:
        with step(f"Putting the data of {target.name} back"):
            _run(file.reset.command, "The command of [reset]", target.folder, os.environ)


def _require_free(target: DeclaredTarget) -> None:
    if is_open(target):
        raise LabError(
            f"The lab starts {target.name} itself ([start] in {target.path}), but "
            f"{listener(http.address(target.url)[1])} listens at {target.url}. Stop that first."
        )


def environment(start: Start) -> dict[str, str]:
    values = {
        name: fill_variables(str(value), f"The variable {name} of [start]")
        for name, value in start.env.items()
    }
    return dict(os.environ) | values


def _argv(start: Start, target: DeclaredTarget, folder: Path) -> list[str]:
    """Return the command. A program of the target's folder also runs the code of another commit:
    environments are rarely committed.
    """
    words = command_line(start)
    own = target.start_folder / words[0]
    if "/" in words[0] and not (folder / words[0]).exists() and own.exists():
        words[0] = str(own)
    return words


def command_line(start: Start) -> list[str]:
    """Return the command with the values of its options."""
    return [_with_options(word, start.options) for word in start.command]


def _with_options(word: str, options: Texts) -> str:
    for name, value in options.items():
        word = word.replace(f"{{{name}}}", str(value))
    return word


def _run(command: Command, what: str, folder: Path, env: Mapping[str, str]) -> None:
    try:
        process = subprocess.run(
            command,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_COMMAND_SECONDS,
        )
    except OSError as error:
        raise LabError(f"{what}, {command[0]}, can't be run in {folder}: {error}.") from None
    except subprocess.TimeoutExpired:
        raise LabError(f"{what}, {command[0]}, did not end within {_COMMAND_SECONDS} s.") from None
    if process.returncode:
        lines = (process.stderr or process.stdout).strip().splitlines()[-_LAST_LINES:]
        raise LabError(
            f"{what}, {command[0]}, ended with exit code {process.returncode}:\n"
            + "\n".join(f"    {line}" for line in lines)
        )
