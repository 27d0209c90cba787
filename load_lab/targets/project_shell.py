"""What a project says of itself: a script in the Python of the project, which the lab does not
import.
"""

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from load_lab.errors import UsageError

_LINES_SHOWN = 5


def printed_by_project(
    script: Path,
    what: str,
    argv: Sequence[str],
    folder: Path,
    environ: Mapping[str, str],
    *,
    seconds: float,
) -> str:
    """Return what `script` prints between `<<<what` and `what>>>` in the environment of a project.

    `argv` starts what reads the script: `["venv/bin/python", "manage.py", "shell"]`. It runs in
    `folder`, with `environ` as its whole environment.

    Raises:
        UsageError: the command cannot be started, fails, takes longer than `seconds`, or prints
            nothing of the kind.
    """
    shown = f"`{' '.join(argv)}`"
    try:
        # A file: Django's shell reads standard input only if it has data at that moment.
        with script.open("rb") as content:
            process = subprocess.run(
                argv,
                cwd=folder,
                env=dict(environ),
                stdin=content,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=seconds,
                check=False,
            )
    except (OSError, ValueError) as error:
        raise UsageError(f"{shown} in {folder} cannot be started: {error}.") from None
    except subprocess.TimeoutExpired:
        raise UsageError(
            f"Timed out after {seconds:g} s waiting for {shown} in {folder}."
        ) from None
    # The project may print its own lines before and after.
    printed = re.findall(f"<<<{what} (.*) {what}>>>", process.stdout)
    if process.returncode or not printed:
        problem = f"failed ({process.returncode})" if process.returncode else f"printed no {what}"
        raise UsageError(f"{shown} {problem} in {folder}:\n{_end(process.stdout + process.stderr)}")
    return str(printed[-1])


def _end(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    return "\n".join(lines[-_LINES_SHOWN:]) or "it printed nothing"
