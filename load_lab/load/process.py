"""Run k6, one process or several: check the load, wait for the end, interrupt it once."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from load_lab.console import note
from load_lab.errors import LabError, UsageError
from load_lab.interrupts import handling
from load_lab.load.messages import Messages
from load_lab.metrics.plan import Plan, parse_plan
from load_lab.stack.engine import K6Command

# k6's exit codes, https://pkg.go.dev/go.k6.io/k6/v2/errext/exitcodes
THRESHOLDS_FAILED, INTERRUPTED = 99, 105

_POLL_SECONDS = 1.0
_SECONDS_BETWEEN_NOTES = 10
# Time for k6's summary after an interrupt.
_SUMMARY_SECONDS = 120
_LOG_BYTES = 1024**2
# Logged by k6/main.js when setup is done.
_LOAD_BEGINS = "the load begins"


def inspect_load(command: K6Command) -> Plan | None:
    """Check the load with `k6 inspect`; only k6's script knows the profiles and their variables.

    Returns the plan of a profile that may stop early, None for every other.

    Raises:
        UsageError: a name or a value is unknown; the message of k6/main.js lists the known ones.
    """
    process = capture_output(
        command, "inspect", "--include-system-env-vars", "--log-format", "json"
    )
    if process.returncode:
        raise UsageError(error_message(process.stderr))
    (scenario,) = json.loads(process.stdout)["scenarios"].values()
    variables = scenario["env"] or {}
    return parse_plan(json.loads(variables.get("EARLY_STOP", "{}")))


def check_options(command: K6Command, k6_options: tuple[str, ...]) -> None:
    """Check options of `k6 run` with --help, which parses them without a run.

    Raises:
        UsageError: k6 rejects an option or its value.
    """
    if k6_options:
        process = capture_output(command, "run", *k6_options, "--help")
        if process.returncode:
            raise UsageError(
                f"k6 rejected {' '.join(k6_options)}: {error_message(process.stderr)}."
            )


def capture_output(
    command: K6Command, *argv: str, script: str = "main.js"
) -> subprocess.CompletedProcess[str]:
    """Run one k6 command on a script of the project and capture its output; the caller checks the
    exit code.
    """
    return subprocess.run(
        [*command.argv, *argv, script],
        cwd=command.cwd,
        env=command.env,
        capture_output=True,
        text=True,
        check=False,
    )


def error_message(log: str) -> str:
    """Return the message of the error at the end of k6's log, without its stack trace."""
    last = log.strip().splitlines()[-1] if log.strip() else "k6 printed nothing"
    try:
        last = str(json.loads(last)["msg"])
    except (ValueError, KeyError):
        return last
    return last.splitlines()[0].removeprefix("Error: ")


@dataclass(frozen=True)
class Process:
    """A k6 to run: its command, the options of `k6 run`, and where its messages go."""

    command: K6Command
    log: IO[str]
    k6_options: tuple[str, ...] = ()

    @property
    def argv(self) -> list[str]:
        # Without a terminal, k6's progress bar would print two lines per second.
        quiet = [] if self.log.isatty() else ["--quiet"]
        return [*self.command.argv, "run", *quiet, *self.k6_options, "main.js"]


@dataclass(frozen=True)
class End:
    """How k6 ended: the exit code of each process, and which of them failed by themselves; when
    the lab stopped them (Unix time), if it did; and whether a signal to the lab was the reason.
    """

    codes: tuple[int, ...]
    failed: tuple[bool, ...]
    stopped_at: float | None = None
    interrupted: bool = False


def never() -> bool:
    """Let the load run to its end."""
    return False


def execute(processes: Sequence[Process], should_stop: Callable[[], bool] = never) -> End:
    """Run k6 to its end, or until `should_stop`, which is called every second, returns true.

    Of several processes, all are interrupted once one has failed: the rest of the load can't be
    judged.
    """
    with _counting_signals() as signals, ExitStack() as started:
        running = [started.enter_context(_running(process)) for process in processes]
        progress = any(one.log is sys.stderr and not one.log.isatty() for one in processes)
        return _wait(running, should_stop, signals, progress=progress or len(processes) > 1)


@dataclass
class _Running:
    """A started k6."""

    process: "subprocess.Popen[bytes]"
    command: K6Command
    is_interrupted: bool = False

    @property
    def code(self) -> int | None:
        return self.process.poll()

    @property
    def has_failed(self) -> bool:
        """Return whether it ended by itself and failed, or was ended by another than the lab."""
        fine = (None, 0, THRESHOLDS_FAILED, *((INTERRUPTED,) if self.is_interrupted else ()))
        return self.code not in fine

    def interrupt(self) -> None:
        """Send SIGINT to k6, which may be in a container that does not exist yet."""
        if self.code is not None:
            return
        self.is_interrupted = True
        argv = self.command.interrupt
        if argv and subprocess.run(argv, capture_output=True, check=False).returncode == 0:
            return
        self.process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        if self.command.kill:
            subprocess.run(self.command.kill, capture_output=True, check=False)
        self.process.kill()
        self.process.wait()


@contextmanager
def _running(process: Process) -> Iterator[_Running]:
    command, is_shown = process.command, process.log is sys.stderr
    popen = subprocess.Popen(
        process.argv,
        cwd=command.cwd,
        env=command.env,
        stdout=process.log,
        stderr=subprocess.PIPE if is_shown else process.log,
        # In the lab's session, the terminal would send Ctrl-C to k6 too, and k6 exits at once at
        # the second one.
        start_new_session=True,
    )
    running = _Running(popen, command)
    messages = Messages(popen.stderr) if popen.stderr else None
    try:
        yield running
    finally:
        # After any error here, k6 must stop loading the stack.
        if running.code is None:
            running.kill()
        if messages:
            messages.end()


@contextmanager
def _counting_signals() -> Iterator[list[int]]:
    """Collect Ctrl-C, TERM and HUP in the block, so that k6 can write its summary whenever they
    arrive.
    """
    signals: list[int] = []

    def handle(number: int, _frame: object) -> None:
        signals.append(number)
        note("Interrupted; k6 writes its summary.")

    with handling(handle):
        yield signals


def _wait(
    running: list[_Running],
    should_stop: Callable[[], bool],
    signals: list[int],
    *,
    progress: bool,
) -> End:
    started = last_note = time.monotonic()
    stopped_at, deadline = None, None
    while True:
        _wait_for_any(running)
        codes = [one.code for one in running]
        ended = tuple(code for code in codes if code is not None)
        if len(ended) == len(codes):
            failed = tuple(one.has_failed for one in running)
            return End(ended, failed, stopped_at, interrupted=bool(signals))
        now = time.monotonic()
        if deadline and now > deadline:
            raise LabError(f"k6 did not end within {_SUMMARY_SECONDS} s of the interrupt.")
        if progress and now - last_note >= _SECONDS_BETWEEN_NOTES:
            last_note = now
            note(f"  k6 runs, {now - started:.0f} s")
        has_failed = any(one.has_failed for one in running)
        # Only once: at a second signal k6 exits without a summary.
        if not stopped_at and (signals or has_failed or should_stop()):
            stopped_at, deadline = time.time(), now + _SUMMARY_SECONDS
            for one in running:
                one.interrupt()


def _wait_for_any(running: list[_Running]) -> None:
    """Wait for one of those that still run, at most until the next poll."""
    alive = [one for one in running if one.code is None]
    with suppress(subprocess.TimeoutExpired):
        if alive:
            alive[0].process.wait(_POLL_SECONDS)


def has_begun(log: Path) -> bool:
    """Return whether k6's log shows that setup is done and the load has begun."""
    return log.exists() and _LOAD_BEGINS in log.read_text(errors="replace")


def truncate_log(log: Path) -> None:
    """Truncate the log to its end: k6 logs each failed request, under overload hundreds of
    megabytes.
    """
    size = log.stat().st_size
    if size > _LOG_BYTES:
        with log.open("rb") as file:
            file.seek(size - _LOG_BYTES)
            end = file.read()
        log.write_bytes(end)
