"""The `lab` command, in a process that is forked with the lab's modules imported.

Importing them takes most of a short command's CPU time, and the tests run hundreds of commands.
"""

import json
import multiprocessing
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

_FORKS = multiprocessing.get_context("forkserver")
# pytest's own main module too: else every child imports it.
_FORKS.set_forkserver_preload(
    [
        "__main__",
        "load_lab.experiments.wording",
        "load_lab.experiments.session",
        "load_lab.experiments.report.writing",
    ]
)


@dataclass(frozen=True)
class CommandResult:
    """Result of a command: exit code, standard output and standard error."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def is_one_message(self, code: int) -> bool:
        """Return whether the command ended with one message, no traceback and exit code `code`."""
        return self.code == code and "error" in self.err.lower() and "Traceback" not in self.err


def run_lab(argv: tuple[str, ...], environ: Mapping[str, str], timeout: float) -> CommandResult:
    """Run the command with the environment `environ`; kill it after `timeout` seconds.

    Raises:
        TimeoutError: it took longer.
    """
    with TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        process = _FORKS.Process(target=_main, args=(argv, dict(environ), Path.cwd(), out, err))
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            raise TimeoutError(f"lab {' '.join(argv)}: not ended after {timeout} s")
        return CommandResult(process.exitcode, out.read_text(), err.read_text())


def _main(argv: tuple[str, ...], environ: dict[str, str], cwd: Path, out: Path, err: Path) -> None:
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(cwd)
    for file, stream in ((out, sys.stdout), (err, sys.stderr)):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), stream.fileno())
    sys.argv = ["lab", *argv]

    from load_lab import console
    from load_lab.cli import main

    # Its width was chosen when it was imported, before the environment was set.
    console.out.width = console._width() or int(environ["COLUMNS"])
    main()
