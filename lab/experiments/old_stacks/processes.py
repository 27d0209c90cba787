"""A group of processes on CPUs of their own, with a log each, stopped as a whole."""

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
from lab.paths import State
from lab.stack.native.render import OPEN_FILES
from lab.stack.native.supervision import last_lines

# A server that still has requests waits for them; then it is killed.
_SECONDS_TO_END = 5


@dataclass(frozen=True)
class Process:
    """One program: its command, on which CPUs, where and with what environment."""

    name: str
    argv: list[str]
    cpus: str
    cwd: Path
    env: Mapping[str, str]


@dataclass
class Processes:
    """Those that were started, in that order."""

    state: State
    started: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    @property
    def pids(self) -> dict[str, int]:
        return {name: process.pid for name, process in self.started.items()}

    def log(self, name: str) -> Path:
        return self.state.logs / f"{name}.log"

    def start(self, process: Process) -> None:
        """Start one, as the leader of a process group of its own."""
        limits = ["prlimit", f"--nofile={OPEN_FILES}", "taskset", "-c", process.cpus]
        # By LAB_STACK a later `lab down` finds what a killed `lab run` left.
        env = {**process.env, "LAB_STACK": str(self.state.base), "LAB_LEGACY": process.name}
        with self.log(process.name).open("wb") as log:
            self.started[process.name] = subprocess.Popen(
                [*limits, *process.argv],
                cwd=process.cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def check(self) -> None:
        """Raises:
        LabError: one has ended; with the end of its log.
        """
        for name, process in self.started.items():
            code = process.poll()
            if code is not None:
                log = self.log(name)
                raise LabError(
                    f"{name} ended with exit code {code}. Its log, {log}, ends:\n{last_lines(log)}"
                )

    def stop(self) -> None:
        """Stop all, last started first, and whatever they started."""
        groups = list(reversed(self.started.values()))
        for process in groups:
            _signal(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + _SECONDS_TO_END
        for process in groups:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(deadline - time.monotonic(), 0))
            # Also for the children of one that ended before them.
            _signal(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def processes(state: State) -> Iterator[Processes]:
    """Inside, processes may be started; after it none of them is left."""
    stop_abandoned(state)
    found = Processes(state)
    try:
        yield found
    finally:
        found.stop()


def stop_abandoned(state: State) -> None:
    """End what a killed `lab run` left of an arm: it would take the CPU, or the port."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            env = process.environ()
            if env.get("LAB_LEGACY") and env.get("LAB_STACK") == str(state.base):
                process.kill()


def _signal(group: int, sent: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, sent)
