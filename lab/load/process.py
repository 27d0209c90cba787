"""k6 as a process: checked before its run, waited for, interrupted once."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from lab.console import note
from lab.errors import UsageError
from lab.stack.engine import K6Command

_POLL_SECONDS = 1.0
_SECONDS_BETWEEN_NOTES = 10
_LOG_BYTES = 1024**2
# What k6/main.js says when setup is done.
_LOAD_BEGINS = "the load begins"


def check_load(command: K6Command) -> None:
    """Ask k6 what it makes of the load; it alone knows the profiles and their variables.

    Raises:
        UsageError: a name or a value is not known; k6/main.js says which are.
    """
    done = captured(command, "inspect", "--include-system-env-vars", "--log-format", "json")
    if done.returncode:
        raise UsageError(_thrown(done.stderr))


def captured(command: K6Command, *argv: str) -> subprocess.CompletedProcess[str]:
    """One call of k6 on the project's script, nothing of it shown; the caller looks at the end."""
    return subprocess.run(
        [*command.argv, *argv, "main.js"],
        cwd=command.cwd,
        env=command.env,
        capture_output=True,
        text=True,
        check=False,
    )


def _thrown(log: str) -> str:
    """The message of the error that k6's log ends with, without its stack."""
    last = log.strip().splitlines()[-1] if log.strip() else "k6 said nothing"
    try:
        last = str(json.loads(last)["msg"])
    except (ValueError, KeyError):
        return last
    return last.splitlines()[0].removeprefix("Error: ")


@dataclass(frozen=True)
class End:
    """How k6 ended: its exit code, and whether it was told to stop before its time."""

    code: int
    stopped: bool = False


def never() -> bool:
    """The load runs to its own end."""
    return False


def execute(command: K6Command, said: IO[str], should_stop: Callable[[], bool] = never) -> End:
    """Run k6 to its end, or until `should_stop`, which is polled each second, returns true.

    k6's messages go to `said`: standard output is the result's.
    """
    # Without a terminal k6's progress bar would be two new lines a second.
    quiet = [] if said.isatty() else ["--quiet"]
    argv = [*command.argv, "run", *quiet, "main.js"]
    process = subprocess.Popen(
        argv,
        cwd=command.cwd,
        env=command.env,
        stdout=said,
        stderr=said,
        # A terminal would send Ctrl-C to k6 as well, which ends at once at the second one.
        start_new_session=True,
    )
    try:
        return _wait(process, should_stop, tell=bool(quiet) and said is sys.stderr)
    finally:
        # Whatever happened to us, it must not go on loading the stack.
        process.kill()


def _wait(process: subprocess.Popen[bytes], should_stop: Callable[[], bool], *, tell: bool) -> End:
    started = noted = time.monotonic()
    stopped = interrupted = False
    while True:
        try:
            return End(process.wait(_POLL_SECONDS), stopped and not interrupted)
        except subprocess.TimeoutExpired:
            now = time.monotonic()
            if tell and now - noted >= _SECONDS_BETWEEN_NOTES:
                noted = now
                note(f"  k6 runs, {now - started:.0f} s")
            if not (stopped or interrupted) and should_stop():
                # Once: at a second signal k6 ends without a summary.
                stopped = True
                process.send_signal(signal.SIGINT)
        except KeyboardInterrupt:
            interrupted = True
            process.send_signal(signal.SIGINT)
            note("Interrupted; k6 writes its summary.")


def has_begun(log: Path) -> bool:
    """Whether k6's log says that setup is done and the load has begun."""
    return log.exists() and _LOAD_BEGINS in log.read_text(errors="replace")


def keep_end(log: Path) -> None:
    """k6 writes a line for each request that fails: under overload, hundreds of megabytes."""
    size = log.stat().st_size
    if size > _LOG_BYTES:
        with log.open("rb") as file:
            file.seek(size - _LOG_BYTES)
            end = file.read()
        log.write_bytes(end)
