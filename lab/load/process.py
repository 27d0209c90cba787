"""k6 as a process: checked before its run, waited for, interrupted once."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

from lab.console import note
from lab.errors import UsageError
from lab.stack.engine import K6Command

_SECONDS_BETWEEN_SIGNS = 10
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


def execute(command: K6Command, said: IO[str]) -> int:
    """k6's exit code. What it says goes to `said`: standard output is the result's."""
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
        return _wait(process, tell=bool(quiet) and said is sys.stderr)
    finally:
        # Whatever happened to us, it must not go on loading the stack.
        process.kill()


def _wait(process: subprocess.Popen[bytes], *, tell: bool) -> int:
    started = time.monotonic()
    while True:
        try:
            return process.wait(_SECONDS_BETWEEN_SIGNS)
        except subprocess.TimeoutExpired:
            if tell:
                note(f"  k6 runs, {time.monotonic() - started:.0f} s")
        except KeyboardInterrupt:
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
