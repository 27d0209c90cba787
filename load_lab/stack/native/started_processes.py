"""Processes that are started for a measurement, and stopped after it."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from load_lab.errors import LabError
from load_lab.interrupts import uninterrupted
from load_lab.paths import State
from load_lab.stack.locks import command_lock
from load_lab.stack.native.render import OPEN_FILES
from load_lab.stack.native.supervision import STARTED, last_lines, mark, started_in

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
    """The started processes, in their order; one that does not stop in time is killed."""

    state: State
    stop_seconds: float
    by_name: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    lock: ExitStack = field(default_factory=ExitStack)

    @property
    def pids(self) -> dict[str, int]:
        return {name: process.pid for name, process in self.by_name.items()}

    def log(self, name: str) -> Path:
        return self.state.logs / f"{name}.log"

    def start(self, process: Process) -> None:
        """Start a process as the leader of a new process group."""
        if not self.by_name:
            self.lock.enter_context(command_lock(self.state))
        limits = ["prlimit", f"--nofile={OPEN_FILES}", "taskset", "-c", process.cpus]
        # By the mark a later `lab down` finds processes that a killed `lab` left.
        env = {**process.env, **mark(self.state), STARTED: process.name}
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
        deadline = time.monotonic() + self.stop_seconds
        for process in groups:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(deadline - time.monotonic(), 0))
            # Also for children that outlive their parent.
            _signal(process.pid, signal.SIGKILL)
            process.wait()
        self.lock.close()


@contextmanager
def processes(state: State, stop_seconds: float = _STOP_SECONDS) -> Iterator[Processes]:
    """Yield an empty `Processes`; afterwards stop every process that was started in it."""
    stop_abandoned(state)
    for folder in (state.logs, state.run):
        folder.mkdir(parents=True, exist_ok=True)
    group = Processes(state, stop_seconds)
    try:
        yield group
    finally:
        with uninterrupted("Stopping what was started first; a moment."):
            group.stop()


def stop_abandoned(state: State) -> None:
    """Kill what a killed `lab` left: it would use the CPU or the port."""
    for process in started_in(state):
        with suppress(psutil.Error):
            process.kill()


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)
