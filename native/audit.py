"""Known vulnerabilities of the packages that are pinned.

make audit, or .venv/bin/python -m native.audit [--json]

pip-audit and npm query their indexes. An index that does not respond is reported, and is not a
failure: the machine may have no access to it. Exit code 1: a vulnerability was found. The old
stacks of experiments/legacy/ are not audited: their vulnerabilities are known, so they listen only
on the loopback (SECURITY.md).
"""

import argparse
import json
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from load_lab.console import step
from load_lab.paths import ROOT

REQUIREMENTS = (
    "backend/requirements.txt",
    "requirements.txt",
    "requirements-dev.txt",
    "native/go.txt",
)
LOCK = "k6/package-lock.json"
# For one index to answer all queries of a file.
_SECONDS = 300

State = Literal["nothing found", "vulnerable", "not audited"]


@dataclass(frozen=True)
class Audit:
    """Result for the packages of one file; `found` has the advisories of each vulnerable
    package.
    """

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
    return of_pip(file, *_run(argv, ROOT, file))


def _npm() -> Audit:
    if shutil.which("npm") is None:
        return Audit(LOCK, "not audited", {}, "npm is not here")
    return of_npm(LOCK, *_run(["npm", "audit", "--json"], ROOT / "k6", LOCK))


def of_pip(file: str, out: str, err: str) -> Audit:
    """Parse pip-audit's output. pip-audit reports a package as clean if its index does not know
    it.
    """
    packages = _document(out).get("dependencies", [])
    if not packages:
        return Audit(file, "not audited", {}, _reason(err))
    vulnerabilities = {
        f"{each['name']} {each['version']}": [one["id"] for one in each["vulns"]]
        for each in packages
        if each.get("vulns")
    }
    unknown = sum("skip_reason" in each for each in packages)
    why = f"its index knows nothing of {unknown} of {len(packages)} packages" if unknown else ""
    return _build_audit(file, vulnerabilities, why)


def of_npm(file: str, out: str, err: str) -> Audit:
    """Parse npm's output, which contains an error when its index did not respond."""
    document = _document(out)
    if "vulnerabilities" not in document:
        message = document.get("message") or document.get("error", {}).get("summary") or err
        return Audit(file, "not audited", {}, _reason(message))
    vulnerabilities = {
        f"{name} {each['range']}": [_advisory(via) for via in each["via"]]
        for name, each in document["vulnerabilities"].items()
    }
    return _build_audit(file, vulnerabilities)


def _advisory(via: Any) -> str:
    """Return an advisory's URL, or the package through which one applies."""
    return str(via["url"]) if isinstance(via, dict) else str(via)


def _build_audit(file: str, vulnerabilities: dict[str, list[str]], why: str = "") -> Audit:
    """Return the audit. `why` the data is incomplete: findings are valid, their absence is not."""
    if vulnerabilities:
        return Audit(file, "vulnerable", vulnerabilities)
    return Audit(file, "not audited" if why else "nothing found", {}, why)


def _document(out: str) -> dict[str, Any]:
    try:
        return dict(json.loads(out))
    except ValueError:
        return {}


def _reason(output: str) -> str:
    lines = output.strip().splitlines()
    return f"its index did not answer: {lines[-1].strip() if lines else 'it said nothing'}"


def _run(argv: list[str], folder: Path, file: str) -> tuple[str, str]:
    with step(f"Asking about {file}"):
        try:
            result = subprocess.run(
                argv, cwd=folder, capture_output=True, text=True, check=False, timeout=_SECONDS
            )
        except subprocess.TimeoutExpired:
            return "", f"no answer within {_SECONDS} s"
    return result.stdout, result.stderr


def _lines(audit: Audit) -> list[str]:
    head = f"{audit.file}: {audit.state}" + (f", since {audit.why}" if audit.why else "")
    return [head, *(f"  {package}: {', '.join(ids)}" for package, ids in audit.found.items())]


if __name__ == "__main__":
    main()
