"""Arms of old stacks as plain processes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from load_lab.experiments.legacy import environment
from load_lab.experiments.legacy.runner import (
    DATABASE,
    RunningArm,
    address_facts,
    arm_cpus,
    free_ports,
)
from load_lab.experiments.legacy.stacks import FOLDER, Arm, Stack
from load_lab.paths import State
from load_lab.settings import LOOPBACK, Settings
from load_lab.stack.native import supervision
from load_lab.stack.native.program_paths import library_env, require
from load_lab.stack.native.started_processes import Process, processes, stop_abandoned
from load_lab.stack.reference import PASSWORD, ROLE
from load_lab.targets.target import PlainServer


@dataclass(frozen=True)
class NativeRunner:
    """See `load_lab.experiments.legacy.runner.LegacyRunner`."""

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
            "PGUSER": ROLE,
            "LEGACY_PASSWORD_FILE": str(self.state.secrets / PASSWORD),
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
        # This folder identifies the Redis as this stack's (load_lab/stack/native/supervision.py).
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
