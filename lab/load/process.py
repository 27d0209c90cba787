"""Run k6 as a process: check the load, wait for the end, interrupt it once."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from lab.console import note
from lab.errors import LabError, UsageError
from lab.interrupts import handling
from lab.load.plan import Plan, parse_plan
from lab.stack.engine import K6Command

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
        raise UsageError(_error_message(process.stderr))
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
                f"k6 rejected {' '.join(k6_options)}: {_error_message(process.stderr)}."
            )


def capture_output(command: K6Command, *argv: str) -> subprocess.CompletedProcess[str]:
    """Run one k6 command on the project's script and capture its output; the caller checks the exit
    code.
    """
    return subprocess.run(
        [*command.argv, *argv, "main.js"],
        cwd=command.cwd,
        env=command.env,
        capture_output=True,
        text=True,
        check=False,
    )


def _error_message(log: str) -> str:
    """Return the message of the error at the end of k6's log, without its stack trace."""
    last = log.strip().splitlines()[-1] if log.strip() else "k6 printed nothing"
    try:
        last = str(json.loads(last)["msg"])
    except (ValueError, KeyError):
        return last
    return last.splitlines()[0].removeprefix("Error: ")


@dataclass(frozen=True)
class End:
    """How k6 ended: its exit code; when the lab stopped it (Unix time), if it did; and whether a
    signal to the lab was the reason.
    """

    code: int
    stopped_at: float | None = None
    interrupted: bool = False


def never() -> bool:
    """Let the load run to its end."""
    return False


def execute(
    command: K6Command,
    log: IO[str],
    should_stop: Callable[[], bool] = never,
    k6_options: tuple[str, ...] = (),
) -> End:
    """Run k6 to its end, or until `should_stop`, which is called every second, returns true.

    k6's messages go to `log`: standard output has only the result.
    """
    # Without a terminal, k6's progress bar would print two lines per second.
    quiet = [] if log.isatty() else ["--quiet"]
    argv = [*command.argv, "run", *quiet, *k6_options, "main.js"]
    with _counting_signals() as signals, _process(command, argv, log) as process:
        progress = bool(quiet) and log is sys.stderr
        return _wait(process, command.interrupt, should_stop, signals, progress=progress)


@contextmanager
def _process(
    command: K6Command, argv: list[str], log: IO[str]
) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(
        argv,
        cwd=command.cwd,
        env=command.env,
        stdout=log,
        stderr=log,
        # In the lab's session, the terminal would send Ctrl-C to k6 too, and k6 exits at once at
        # the second one.
        start_new_session=True,
    )
    try:
        yield process
    finally:
        # After any error here, k6 must stop loading the stack.
        if process.poll() is None:
            _kill(process, command.kill)


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
    process: "subprocess.Popen[bytes]",
    interrupt: tuple[str, ...],
    should_stop: Callable[[], bool],
    signals: list[int],
    *,
    progress: bool,
) -> End:
    started = last_note = time.monotonic()
    stopped_at, deadline = None, None
    while True:
        with suppress(subprocess.TimeoutExpired):
            code = process.wait(_POLL_SECONDS)
            return End(code, stopped_at, interrupted=bool(signals))
        now = time.monotonic()
        if deadline and now > deadline:
            raise LabError(f"k6 did not end within {_SUMMARY_SECONDS} s of the interrupt.")
        if progress and now - last_note >= _SECONDS_BETWEEN_NOTES:
            last_note = now
            note(f"  k6 runs, {now - started:.0f} s")
        # Only once: at a second signal k6 exits without a summary.
        if not stopped_at and (signals or should_stop()):
            stopped_at, deadline = time.time(), now + _SUMMARY_SECONDS
            _interrupt(process, interrupt)


def _interrupt(process: subprocess.Popen[bytes], argv: tuple[str, ...]) -> None:
    """Send SIGINT to k6: with `argv` where it runs in a container, which may not exist yet."""
    if argv and subprocess.run(argv, capture_output=True, check=False).returncode == 0:
        return
    process.send_signal(signal.SIGINT)


def _kill(process: "subprocess.Popen[bytes]", argv: tuple[str, ...]) -> None:
    if argv:
        subprocess.run(argv, capture_output=True, check=False)
    process.kill()
    process.wait()


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
