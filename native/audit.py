"""Known vulnerabilities of the packages that are pinned.

make audit, or .venv/bin/python -m native.audit [--json]

pip-audit and npm ask their indexes. One that does not answer is said, and fails nothing: a machine
without that network can't know. Exit code 1: something was found. The old stacks of
experiments/legacy/ are left out: their holes are known, which is why
they run on the loopback alone (SECURITY.md).
"""

import argparse
import json
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from lab.console import step
from lab.paths import ROOT

REQUIREMENTS = ("backend/requirements.txt", "requirements.txt", "requirements-dev.txt")
LOCK = "k6/package-lock.json"
# For one index to answer all that is asked.
_SECONDS = 300

State = Literal["nothing found", "vulnerable", "not audited"]


@dataclass(frozen=True)
class Audit:
    """What is known of one file's packages: of those that are vulnerable, each with its ids."""

    file: str
    state: State
    found: dict[str, list[str]]
    why: str = ""


def main() -> None:
    """Print one line for each file, and each vulnerable package."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one JSON document instead of lines")
    as_json = parser.parse_args().json
    audits = [*map(_python, REQUIREMENTS), _npm()]
    if as_json:
        print(json.dumps({"audits": [asdict(audit) for audit in audits]}))
    else:
        print("\n".join(line for audit in audits for line in _lines(audit)))
    sys.exit(any(audit.state == "vulnerable" for audit in audits))


def _python(file: str) -> Audit:
    argv = [
        *(str(Path(sys.executable).parent / "pip-audit"), "--requirement", str(ROOT / file)),
        # Every version is pinned with its hash: there is nothing to resolve or to install.
        *("--require-hashes", "--disable-pip", "--progress-spinner", "off", "--format", "json"),
    ]
    return of_pip(file, *_said(argv, ROOT, file))


def _npm() -> Audit:
    if shutil.which("npm") is None:
        return Audit(LOCK, "not audited", {}, "npm is not here")
    return of_npm(LOCK, *_said(["npm", "audit", "--json"], ROOT / "k6", LOCK))


def of_pip(file: str, out: str, err: str) -> Audit:
    """From what pip-audit printed. It calls a package clean that its index says nothing about."""
    asked = _document(out).get("dependencies", [])
    if not asked:
        return Audit(file, "not audited", {}, _reason(err))
    found = {
        f"{each['name']} {each['version']}": [one["id"] for one in each["vulns"]]
        for each in asked
        if each.get("vulns")
    }
    unknown = sum("skip_reason" in each for each in asked)
    why = f"its index knows nothing of {unknown} of {len(asked)} packages" if unknown else ""
    return _audited(file, found, why)


def of_npm(file: str, out: str, err: str) -> Audit:
    """From what npm printed: with an error in it when its index did not answer."""
    document = _document(out)
    if "vulnerabilities" not in document:
        said = document.get("message") or document.get("error", {}).get("summary") or err
        return Audit(file, "not audited", {}, _reason(said))
    found = {
        f"{name} {each['range']}": [_advisory(via) for via in each["via"]]
        for name, each in document["vulnerabilities"].items()
    }
    return _audited(file, found)


def _advisory(via: Any) -> str:
    """An advisory's address, or the package by which one is reached."""
    return str(via["url"]) if isinstance(via, dict) else str(via)


def _audited(file: str, found: dict[str, list[str]], why: str = "") -> Audit:
    """`why` not all of it is known: what was found stands, that nothing was does not."""
    if found:
        return Audit(file, "vulnerable", found)
    return Audit(file, "not audited" if why else "nothing found", {}, why)


def _document(out: str) -> dict[str, Any]:
    try:
        return dict(json.loads(out))
    except ValueError:
        return {}


def _reason(said: str) -> str:
    lines = said.strip().splitlines()
    return f"its index did not answer: {lines[-1].strip() if lines else 'it said nothing'}"


def _said(argv: list[str], folder: Path, file: str) -> tuple[str, str]:
    with step(f"Asking about {file}"):
        try:
            done = subprocess.run(
                argv, cwd=folder, capture_output=True, text=True, check=False, timeout=_SECONDS
            )
        except subprocess.TimeoutExpired:
            return "", f"no answer within {_SECONDS} s"
    return done.stdout, done.stderr


def _lines(audit: Audit) -> list[str]:
    head = f"{audit.file}: {audit.state}" + (f", since {audit.why}" if audit.why else "")
    return [head, *(f"  {package}: {', '.join(ids)}" for package, ids in audit.found.items())]


if __name__ == "__main__":
    main()
