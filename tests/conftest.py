"""Fixtures of the lab's own tests: the `lab` command as a user runs it."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

LAB = Path(sys.executable).parent / "lab"


@dataclass(frozen=True)
class Said:
    """What a command left: exit code and both outputs."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def is_one_message(self, code: int) -> bool:
        """Whether it ended as errors should: one message, no traceback, that exit code."""
        return self.code == code and "error" in self.err.lower() and "Traceback" not in self.err


@pytest.fixture(scope="session")
def lab():
    """Run `lab`; keyword arguments are environment variables."""

    def run(*argv: str, **environ: str) -> Said:
        done = subprocess.run(
            [str(LAB), *argv],
            env={**os.environ, **environ},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """The sample's report, for all who only read it: its folder, and its files."""
    from support.report_samples import CLAIMS, load

    from lab.report import write_report

    folder = tmp_path_factory.mktemp("report")
    return folder, write_report(*load(), CLAIMS, folder)
