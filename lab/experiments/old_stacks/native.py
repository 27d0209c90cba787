"""Arms of old stacks as plain processes."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from lab.errors import LabError
from lab.experiments.old_stacks import environment
from lab.experiments.old_stacks.runner import (
    DATABASE,
    RunningArm,
    address_facts,
    arm_cpus,
    free_ports,
)
from lab.experiments.old_stacks.stacks import FOLDER, Arm, Stack
from lab.paths import State
from lab.settings import LOOPBACK, Settings
from lab.stack.native import supervision
from lab.stack.native.programs import library_env, require
from lab.stack.native.render import OPEN_FILES
from lab.stack.native.supervision import last_lines
from lab.targets.target import PlainServer

# A server waits for its running requests; after this time it is killed.
_STOP_SECONDS = 5


@dataclass(frozen=True)
class Process:
    """One program: its command, CPUs, working directory and environment."""

    name: str
    argv: list[str]
    cpus: str
    cwd: Path
    env: Mapping[str, str]


@dataclass
class Processes:
    """The started processes, in their order."""

    state: State
    by_name: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    @property
    def pids(self) -> dict[str, int]:
        return {name: process.pid for name, process in self.by_name.items()}

    def log(self, name: str) -> Path:
        return self.state.logs / f"{name}.log"

    def start(self, process: Process) -> None:
        """Start a process as the leader of a new process group."""
        limits = ["prlimit", f"--nofile={OPEN_FILES}", "taskset", "-c", process.cpus]
        # By LAB_STACK a later `lab down` finds processes that a killed `lab run` left.
        env = {**process.env, "LAB_STACK": str(self.state.base), "LAB_LEGACY": process.name}
        with self.log(process.name).open("wb") as log:
            self.by_name[process.name] = subprocess.Popen(
                [*limits, *process.argv],
                cwd=process.cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def check(self) -> None:
        """Check that every process is running.

        Raises:
            LabError: one has ended; with the end of its log.
        """
        for name, process in self.by_name.items():
            code = process.poll()
            if code is not None:
                log = self.log(name)
                raise LabError(
                    f"{name} ended with exit code {code}. Its log, {log}, ends:\n{last_lines(log)}"
                )

    def stop(self) -> None:
        """Stop all processes, last started first, and their children."""
        groups = list(reversed(self.by_name.values()))
        for process in groups:
            _signal(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + _STOP_SECONDS
        for process in groups:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(deadline - time.monotonic(), 0))
            # Also for children that outlive their parent.
            _signal(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def processes(state: State) -> Iterator[Processes]:
    """Yield an empty `Processes`; afterwards stop every process that was started in it."""
    stop_abandoned(state)
    group = Processes(state)
    try:
        yield group
    finally:
        group.stop()


def stop_abandoned(state: State) -> None:
    """Kill the arm that a killed `lab run` left: it would use the CPU or the port."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            env = process.environ()
            if env.get("LAB_LEGACY") and env.get("LAB_STACK") == str(state.base):
                process.kill()


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)


@dataclass(frozen=True)
class NativeRunner:
    """See `lab.experiments.old_stacks.runner.LegacyRunner`."""

    settings: Settings
    state: State

    def make(self, stack: Stack) -> None:
        environment.make(stack)

    def prepare(self, stack: Stack) -> None:
        environment.run(stack.prepare, stack, self._env(stack, environment.make(stack)))

    @contextmanager
    def running(self, stack: Stack, arm: Arm) -> Iterator[RunningArm]:
        port, layer_port = free_ports(self.settings, 2)
        cpus = arm_cpus(arm, self.settings)
        env = self._env(stack, environment.make(stack)) | self._layer_env(arm, layer_port)
        # Processes end before their shared memory is removed: a running one would create it again.
        with _clean_ipc(self.state), processes(self.state) as group:
            if arm.layer == "redis":
                group.start(self._redis(layer_port, cpus.layer))
            for name, argv in arm.commands(LOOPBACK, port):
                group.start(Process(name, argv, cpus.server, stack.project_folder, env))
            facts = address_facts(arm, cpus, port, layer_port)
            url = f"http://{LOOPBACK}:{port}"
            yield RunningArm(
                PlainServer(stack.name, url, arm.title, group.pids, group.check), facts
            )

    def _env(self, stack: Stack, programs: Path) -> dict[str, str]:
        """Return the environment of the stack's programs, without the lab's Python variables."""
        inherited = {
            name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ
        }
        database = {
            "PGHOST": LOOPBACK,
            "PGPORT": str(self.settings.LAB_POSTGRES_PORT),
            "PGDATABASE": DATABASE,
            "PGUSER": "hotel",
            "LEGACY_PASSWORD_FILE": str(self.state.secrets / "hotel_password"),
        }
        return {
            **inherited,
            **(database if stack.database else {}),
            "PATH": f"{programs}:{os.environ.get('PATH', '')}",
            "PYTHONPATH": str(FOLDER / "projects"),
            "PYTHONUNBUFFERED": "1",
        }

    def _layer_env(self, arm: Arm, port: int) -> dict[str, str]:
        if arm.layer is None:
            return {}
        return {
            "LEGACY_LAYER": arm.layer,
            "LEGACY_REDIS_URL": f"redis://{LOOPBACK}:{port}/0",
            "LEGACY_IPC_PREFIX": supervision.shared_memory_prefix(self.state),
        }

    def _redis(self, port: int, cpus: str) -> Process:
        """Return a Redis for the channel layer: it keeps all messages, while the cache evicts."""
        flags = {
            "bind": LOOPBACK,
            "port": str(port),
            "save": "",
            "appendonly": "no",
            # Keeps the command line, which identifies the process. Default: yes.
            "set-proc-title": "no",
        }
        argv = [str(require("redis-server"))]
        argv += [part for name, value in flags.items() for part in (f"--{name}", value)]
        # This folder identifies the Redis as this stack's (lab/stack/native/supervision.py).
        env = {**os.environ, **library_env()}
        return Process("legacy-redis", argv, cpus, self.state.run, env)


@contextmanager
def _clean_ipc(state: State) -> Iterator[None]:
    """Remove asgi_ipc's shared memory before and after."""
    stop_abandoned(state)
    supervision.remove_shared_memory(state)
    try:
        yield
    finally:
        supervision.remove_shared_memory(state)
