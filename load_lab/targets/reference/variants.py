"""Variants of the reference app: settings, presets and commits of this repository."""

import hashlib
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lab_settings.declaration import names_used_by

from load_lab.console import step
from load_lab.errors import LabError, UsageError
from load_lab.paths import PRESETS, lab_file
from load_lab.settings import Settings, update_live_settings
from load_lab.settings.presets import preset_assignments
from load_lab.targets.commits import checkout, find_commit
from load_lab.targets.file import Variation
from load_lab.targets.subject import Variant

_ENVIRONMENTS = lab_file(".lab/environments")
_REQUIREMENTS = "backend/requirements.txt"
# What the lab needs of a commit's backend: its settings are read from the lab's file.
_DECLARATION = "backend/lab_settings/declaration.py"
_MIGRATION = re.compile(r"backend/[^/]+/migrations/\d[^/]*\.py")
_LAST_LINES = 10


def settings_with(base: Settings, variant: Variant) -> Settings:
    """Return the settings of a stack with this variant.

    Raises:
        UsageError: a setting is unknown, or needs a new start.
    """
    values = {name: str(value) for name, value in variant.changes.options.items()}
    return update_live_settings(base, values)


def find_variant(text: str) -> Variant:
    """Return the variant of a preset, a list of settings (LAB_DETAIL=fast,LAB_WORKERS=4), a
    commit's name, or `.`: this checkout as it is.

    Raises:
        UsageError: it is none of these.
    """
    if text in {path.stem for path in PRESETS.glob("*.env")}:
        return _with_settings(text, preset_assignments(text))
    if text == ".":
        return Variant(text)
    if "=" in text:
        parts = re.split(r"[,\s]+", text.strip())
        for part in parts:
            if "=" not in part:
                raise UsageError(f"'{part}' in '{text}' is not a setting. Write NAME=VALUE.")
        return _with_settings(text, parts)
    try:
        return Variant(text, Variation(git=find_commit(lab_file(), text)))
    except UsageError:
        presets = ", ".join(sorted(path.stem for path in PRESETS.glob("*.env")))
        raise UsageError(
            f"{text} is no preset ({presets}), no list of settings (LAB_DETAIL=fast) and no commit "
            "of this repository. Name one of these, or . for this checkout; fetch a commit first."
        ) from None


def _with_settings(text: str, assignments: Sequence[str]) -> Variant:
    # Not by the model's own check of names: the settings have one that tells more.
    options = dict(assignment.split("=", 1) for assignment in assignments)
    return Variant(text, Variation.model_construct({"options"}, options=options))


def require_comparable(variants: Sequence[Variant]) -> None:
    """Check that the commits can run on the same data.

    Raises:
        UsageError: one is too old, or has other migrations than this checkout.
    """
    commits = [(each.name, each.changes.git) for each in variants if each.changes.git]
    if not commits:
        return
    for name, commit in commits:
        if missing := _missing(commit):
            raise UsageError(
                f"{name} is too old for this lab: its backend has no {missing}. Name a later "
                "commit."
            )
    here = _migrations_here()
    for name, commit in commits:
        if changed := _changed(_migrations(commit), here):
            raise UsageError(
                f"{name} has other migrations than this checkout "
                f"({', '.join(changed)}), so it can't run on the same data. Check out a commit "
                "with those of both, or compare others."
            )


def _missing(commit: str) -> str:
    """Return what the lab needs of a commit's backend and does not find; empty for nothing."""
    shown = _git("show", f"{commit}:{_DECLARATION}")
    if shown.returncode:
        return _DECLARATION.removeprefix("backend/")
    # k6 checks that the backend has them.
    names = names_used_by("backend")
    return next((name for name in names if not re.search(rf"\b{name}\b", shown.stdout)), "")


def _changed(first: dict[str, str], second: dict[str, str]) -> list[str]:
    names = sorted({*first, *second})
    return [Path(name).stem for name in names if first.get(name) != second.get(name)]


def _migrations(commit: str) -> dict[str, str]:
    """Return the migrations of a commit: their blobs, by path."""
    listed = _git("ls-tree", "-r", commit, "--", "backend").stdout.splitlines()
    blobs = {line.partition("\t")[2]: line.split()[2] for line in listed}
    return {name: blob for name, blob in blobs.items() if _MIGRATION.fullmatch(name)}


def _migrations_here() -> dict[str, str]:
    """Return those of this checkout, which the lab applies; also such as git does not know."""
    files = [
        path
        for path in (lab_file("backend")).glob("*/migrations/*.py")
        if _MIGRATION.fullmatch(str(path.relative_to(lab_file())))
    ]
    hashes = _git("hash-object", *map(str, files)).stdout.split()
    return {
        str(path.relative_to(lab_file())): blob for path, blob in zip(files, hashes, strict=True)
    }


def _git(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["git", "-C", str(lab_file()), *arguments], capture_output=True, text=True, check=False
    )


@contextmanager
def code_of(variant: Variant) -> Iterator[Path]:
    """Yield the checkout with the variant's code, and an environment in `.venv` that runs it.

    Raises:
        LabError: it can't be checked out, or its requirements can't be installed.
    """
    if variant.changes.git is None:
        yield lab_file()
        return
    with checkout(lab_file(), variant.changes.git) as folder:
        (folder / ".venv").symlink_to(_environment(folder, variant.name))
        yield folder


def _environment(folder: Path, name: str) -> Path:
    """Return an environment with what the checkout's backend requires; made once."""
    requirements = (folder / _REQUIREMENTS).read_bytes()
    if requirements == lab_file(_REQUIREMENTS).read_bytes():
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
