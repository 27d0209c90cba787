"""The `lab` command in the test's process: a start of a process would cost half a second a case."""

import re
import sys
from dataclasses import dataclass

import pytest

from load_lab.cli import main


@dataclass(frozen=True)
class Ending:
    """How a command ended: exit code, standard output and standard error."""

    code: int
    out: str
    err: str

    def is_error(self, code, message):
        """Return whether it ended with one error message and the exit code `code`."""
        errors = re.findall("^[Ee]rror: ", self.err, re.MULTILINE)
        return (self.code, len(errors)) == (code, 1) and message in self.err


@pytest.fixture
def run_lab(monkeypatch, capsys, tmp_path):
    """Return a function that runs `lab` without a stack; a traceback fails the test."""
    monkeypatch.setenv("LAB_STATE_DIR", str(tmp_path / "state"))

    def run(*argv):
        monkeypatch.setattr(sys, "argv", ["lab", *argv])
        with pytest.raises(SystemExit) as end:
            main()
        return Ending(end.value.code or 0, *capsys.readouterr())

    return run
