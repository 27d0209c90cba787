"""Arms of old stacks as plain processes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.experiments.old_stacks import environment
from lab.experiments.old_stacks.cpus import arm_cpus
from lab.experiments.old_stacks.processes import Process, processes, stop_abandoned
from lab.experiments.old_stacks.runner import (
    DATABASE,
    Running,
    address_facts,
    free_ports,
)
from lab.experiments.old_stacks.stacks import FOLDER, Arm, Stack
from lab.paths import State
from lab.settings import LOOPBACK, Settings
from lab.stack.native import shared_memory
from lab.stack.native.programs import library_env, require


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
    def running(self, stack: Stack, arm: Arm) -> Iterator[Running]:
        port, layer_port = free_ports(self.settings, 2)
        cpus = arm_cpus(arm, self.settings)
        env = self._env(stack, environment.make(stack)) | self._layer_env(arm, layer_port)
        # The processes end before their shared memory goes: what lives makes it anew.
        with _no_ipc(self.state), processes(self.state) as started:
            if arm.layer == "redis":
                started.start(self._redis(layer_port, cpus.layer))
            for name, argv in arm.commands(LOOPBACK, port):
                started.start(Process(name, argv, cpus.server, stack.project_folder, env))
            facts = address_facts(arm, cpus, port, layer_port)
            yield Running(f"http://{LOOPBACK}:{port}", started.pids, started.check, facts)

    def _env(self, stack: Stack, programs: Path) -> dict[str, str]:
        """What the stack's own programs read; nothing of the lab's Python."""
        kept = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ}
        database = {
            "PGHOST": LOOPBACK,
            "PGPORT": str(self.settings.LAB_POSTGRES_PORT),
            "PGDATABASE": DATABASE,
            "PGUSER": "hotel",
            "LEGACY_PASSWORD_FILE": str(self.state.secrets / "hotel_password"),
        }
        return {
            **kept,
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
            "LEGACY_IPC_PREFIX": shared_memory.prefix(self.state),
        }

    def _redis(self, port: int, cpus: str) -> Process:
        """The layer's own: it keeps every message, where the cache forgets the oldest."""
        flags = {
            "bind": LOOPBACK,
            "port": str(port),
            "save": "",
            "appendonly": "no",
            # Keeps the command line, which says what it is. Default: yes.
            "set-proc-title": "no",
        }
        argv = [str(require("redis-server"))]
        argv += [part for name, value in flags.items() for part in (f"--{name}", value)]
        # Its folder, by which a Redis is known as this stack's (lab/stack/native/supervision.py).
        env = {**os.environ, **library_env()}
        return Process("legacy-redis", argv, cpus, self.state.run, env)


@contextmanager
def _no_ipc(state: State) -> Iterator[None]:
    """No shared memory of asgi_ipc before and after."""
    stop_abandoned(state)
    shared_memory.remove(state)
    try:
        yield
    finally:
        shared_memory.remove(state)
