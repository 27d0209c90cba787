"""What can be compared: settings, presets and commits of this repository."""

import hashlib
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lab.console import step
from lab.errors import LabError, UsageError
from lab.paths import PRESETS, ROOT
from lab.settings import Settings, update_live_settings
from lab.settings.presets import preset_assignments
from lab.targets.commits import checkout, find_commit

_ENVIRONMENTS = ROOT / ".lab/environments"
_REQUIREMENTS = "backend/requirements.txt"
# What the lab needs of a commit's backend: its settings are read from the lab's file.
_NEEDED = "backend/lab_settings/declaration.py"
_LAST_LINES = 10


@dataclass(frozen=True)
class Variant:
    """One side of a comparison: settings that differ from the base, and a commit or this checkout
    (None).
    """

    name: str
    assignments: tuple[str, ...] = ()
    commit: str | None = None

    def settings(self, base: Settings) -> Settings:
        """Return the settings of a stack with this variant.

        Raises:
            UsageError: a setting is unknown, or needs a new start.
        """
        values = dict(assignment.split("=", 1) for assignment in self.assignments)
        return update_live_settings(base, values)


def find_variant(text: str) -> Variant:
    """Return the variant of a preset, a list of settings (LAB_DETAIL=fast,LAB_WORKERS=4), a
    commit's name, or `.`: this checkout as it is.

    Raises:
        UsageError: it is none of these.
    """
    if text in {path.stem for path in PRESETS.glob("*.env")}:
        return Variant(text, tuple(preset_assignments(text)))
    if text == ".":
        return Variant(text)
    if "=" in text:
        parts = tuple(re.split(r"[,\s]+", text.strip()))
        for part in parts:
            if "=" not in part:
                raise UsageError(f"'{part}' in '{text}' is not a setting. Write NAME=VALUE.")
        return Variant(text, parts)
    try:
        return Variant(text, commit=find_commit(ROOT, text))
    except UsageError:
        presets = ", ".join(sorted(path.stem for path in PRESETS.glob("*.env")))
        raise UsageError(
            f"{text} is no preset ({presets}), no list of settings (LAB_DETAIL=fast) and no commit "
            "of this repository. Name one of these, or . for this checkout; fetch a commit first."
        ) from None


def require_comparable(a: Variant, b: Variant) -> None:
    """Check that the commits can run on the same data.

    Raises:
        UsageError: one is too old, or their migrations differ.
    """
    for variant in (a, b):
        if variant.commit and not _has(variant.commit, _NEEDED):
            raise UsageError(
                f"{variant.name} is too old for this lab: its backend has no "
                f"{_NEEDED.removeprefix('backend/')}. Name a later commit."
            )
    changed = _changed_migrations(a.commit, b.commit)
    if changed:
        raise UsageError(
            f"{a.name} and {b.name} have other migrations ({', '.join(changed)}), so they can't "
            "run on the same data. Compare commits before or after them."
        )


def _has(commit: str, path: str) -> bool:
    return _git("cat-file", "-e", f"{commit}:{path}").returncode == 0


def _changed_migrations(first: str | None, second: str | None) -> list[str]:
    """Return the migrations that differ; None is this checkout."""
    if first == second:
        return []
    commits = [commit for commit in (first, second) if commit]
    pattern = ":(glob)backend/*/migrations/*.py"
    result = _git("diff", "--name-only", *commits, "--", pattern)
    return [Path(line).stem for line in result.stdout.split()]


def _git(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False
    )


@contextmanager
def code_of(variant: Variant) -> Iterator[Path]:
    """Yield the checkout with the variant's code, and an environment in `.venv` that runs it.

    Raises:
        LabError: it can't be checked out, or its requirements can't be installed.
    """
    if variant.commit is None:
        yield ROOT
        return
    with checkout(ROOT, variant.commit) as folder:
        (folder / ".venv").symlink_to(_environment(folder, variant.name))
        yield folder


def _environment(folder: Path, name: str) -> Path:
    """Return an environment with what the checkout's backend requires; made once."""
    requirements = (folder / _REQUIREMENTS).read_bytes()
    if requirements == (ROOT / _REQUIREMENTS).read_bytes():
        return Path(sys.prefix)
    environment = _ENVIRONMENTS / hashlib.sha256(requirements).hexdigest()[:16]
    if not (environment / "complete").exists():
        with step(f"Installing what the backend of {name} requires"):
            _install(environment, folder / _REQUIREMENTS, name)
        (environment / "complete").touch()
    return environment


def _install(environment: Path, requirements: Path, name: str) -> None:
    python = environment / "bin/python"
    commands = (
        [sys.executable, "-m", "venv", "--clear", str(environment)],
        [
            *(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--require-hashes", "-r", str(requirements)),
        ],
    )
    for command in commands:
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        if process.returncode:
            end = "\n".join((process.stderr or process.stdout).strip().splitlines()[-_LAST_LINES:])
            raise LabError(f"The backend of {name} can't be installed:\n{end}")
