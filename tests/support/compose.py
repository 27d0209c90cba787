"""The compose files as docker compose reads them, without an engine."""

import json
import os
import subprocess
from typing import Any

from load_lab.paths import BIN, ROOT
from tests.support.missing import missing


def config(*files: str, **environ: str) -> dict[str, Any]:
    """Return the resolved services of `files`, and those of profiles named in the environment."""
    program = BIN / "docker-compose"
    if not program.exists():
        missing("docker-compose is not here: `make test-core` builds it with Go.")
    env = {k: v for k, v in os.environ.items() if not k.startswith("LAB_")} | environ
    flags = [part for name in files for part in ("-f", str(ROOT / name))]
    process = subprocess.run(
        [str(program), *flags, "config", "--format", "json"],
        env=env,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert "variable is not set" not in process.stderr
    return dict(json.loads(process.stdout)["services"])
