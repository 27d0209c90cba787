"""schemathesis against the API's own schema, through Nginx (test_schema.py)."""

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import httpx

FOLDER = Path(__file__).parent
PROGRAM = Path(sys.executable).parent / "schemathesis"
OPERATIONS = ("GET /api/hotel/", "GET /api/hotel/{hotel_id}/", "POST /api/booking/")


@dataclass(frozen=True)
class CaseResults:
    """The output of schemathesis, and the number of answers by operation and status."""

    code: int
    output: str
    counts: Counter[str]

    @property
    def cases(self) -> int:
        return self.counts.total()

    def table(self) -> str:
        lines = (f"  {count:6} {what}" for what, count in sorted(self.counts.items()))
        return "\n".join([f"{self.cases} cases", *lines])


def run_cases(url: str, examples: int, folder: Path) -> CaseResults:
    """Run schemathesis with `examples` examples of each operation, in addition to its other phases.
    The examples are the same each time.
    """
    path = folder / "seen.json"
    environ = {
        "SCHEMATHESIS_HOOKS": str(FOLDER / "schema_hooks.py"),
        "SCHEMA_KNOWN": json.dumps(_known(url)),
        "SCHEMA_COUNTS": str(path),
    }
    process = subprocess.run(
        _argv(url, examples),
        cwd=folder,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    counts = Counter(json.loads(path.read_text())) if path.exists() else Counter()
    return CaseResults(process.returncode, process.stdout + process.stderr, counts)


def _argv(url: str, examples: int) -> list[str]:
    return [
        *(str(PROGRAM), "--no-color", "--config-file", str(FOLDER / "schemathesis.toml")),
        *("run", f"{url}/api/schema/?format=json", "--max-examples", str(examples)),
        *("--generation-deterministic", "--request-timeout", "60", "--no-shrink"),
    ]


def _known(url: str) -> dict[str, list[str]]:
    """Return ids from the API; every suite has room for two guests."""
    hotels = [hotel["id"] for hotel in httpx.get(f"{url}/api/hotel/").json()]
    suites = httpx.get(f"{url}/api/hotel/{hotels[0]}/").json()["suites"]
    guests = {guest for suite in suites for b in suite["bookings"] for guest in b["customers"]}
    return {
        "hotels": hotels,
        "suites": [suite["id"] for suite in suites],
        "customers": sorted(guests),
    }
