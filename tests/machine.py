"""The parts of `make test-machine`, one after the other, and when each has last passed.

python -m tests.machine           parts that have not passed with this commit
python -m tests.machine PART …    these parts; one that can't run here is a failure then
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from load_lab.console import note
from load_lab.paths import ROOT

# The flag with which load_lab.stack.native.install brings what a part needs.
PARTS = {
    "causes": "",
    "kills": "",
    "slow": "",
    "apps": "--with-vegeta",
    "kubernetes": "--with-kubernetes",
}
_FILE = ROOT / ".lab/test-machine.json"


@dataclass(frozen=True)
class Pass:
    """When a part has passed: date, commit, and how long it took."""

    date: str
    commit: str
    seconds: int


def main() -> int:
    named = sys.argv[1:]
    if unknown := set(named) - set(PARTS):
        note(f"There is no part {', '.join(sorted(unknown))}. Parts: {', '.join(PARTS)}.")
        return 2
    results = {part: _result(part, must_run=bool(named)) for part in named or _to_do()}
    for part in PARTS:
        note(f"{part:12}{results.get(part, 'not run'):24}{_text(_passes().get(part))}")
    return int("failed" in results.values())


def _to_do() -> Iterable[str]:
    commit = _commit()
    passes = _passes()
    return [part for part in PARTS if part not in passes or passes[part].commit != commit]


def _result(part: str, *, must_run: bool) -> str:
    if reason := _problem(part):
        note(f"{part}: {reason}")
        return "failed" if must_run else "skipped"
    note(f"\n{part}")
    started = time.time()
    argv = [sys.executable, "-m", "pytest", "-s", "-m", f"machine(part='{part}')"]
    if subprocess.run(argv, cwd=ROOT, check=False).returncode:
        return "failed"
    date = time.strftime("%Y-%m-%d %H:%M", time.localtime(started))
    passes = _passes() | {part: Pass(date, _commit(), round(time.time() - started))}
    _FILE.write_text(json.dumps({name: asdict(each) for name, each in passes.items()}, indent=1))
    return "passed"


def _problem(part: str) -> str:
    """Install what the part needs; return why that is not possible, in one line."""
    if not PARTS[part]:
        return ""
    argv = [sys.executable, "-m", "load_lab.stack.native.install", PARTS[part]]
    process = subprocess.run(argv, cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False)
    lines = process.stderr.strip().splitlines()
    return lines[-1] if process.returncode and lines else ""


def _passes() -> dict[str, Pass]:
    if not _FILE.exists():
        return {}
    return {name: Pass(**each) for name, each in json.loads(_FILE.read_text()).items()}


def _text(last: Pass | None) -> str:
    if last is None:
        return "has not passed here"
    return f"passed {last.date} in {last.seconds} s ({last.commit})"


def _commit() -> str:
    """Return the commit, with a mark if files differ from it: what passed then is run again."""
    argv = ["git", "describe", "--always", "--abbrev=12", "--dirty", "--exclude=*"]
    process = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    commit = process.stdout.strip()
    return commit if commit and not commit.endswith("-dirty") else f"{commit}, {time.time():.0f}"


if __name__ == "__main__":
    sys.exit(main())
