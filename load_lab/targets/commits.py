"""The code of a commit of the target's repository, in a git worktree."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from load_lab.errors import LabError, UsageError
from load_lab.interrupts import uninterrupted
from load_lab.paths import project


def find_commit(folder: Path, name: str) -> str:
    """Return the hash of the commit that has this name in the folder's repository.

    Raises:
        UsageError: there is none.
    """
    commit = _git(
        folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"
    )
    if commit is None:
        raise UsageError(
            f"{folder} is in no git repository that has a commit {name}. Name a branch, a tag or a "
            "commit; fetch it first."
        )
    return commit


@contextmanager
def checkout(folder: Path, commit: str, number: int = 1) -> Iterator[Path]:
    """Yield the folder as the commit has it, in a worktree that is removed afterwards; of the same
    commit, there can be several, by `number`.

    Raises:
        LabError: git can't check the commit out, or it has no such folder.
    """
    place = _git(folder, "rev-parse", "--show-prefix") or ""
    worktree = project().state / "worktrees" / f"{commit}-{number}"
    _remove(folder, worktree)
    try:
        if _git(folder, "worktree", "add", "--detach", "--force", str(worktree), commit) is None:
            raise LabError(f"git can't check out {commit} from {folder}: git worktree add failed.")
        if not (worktree / place).is_dir():
            raise LabError(f"The commit {commit} has no folder {place}.")
        yield worktree / place
    finally:
        with uninterrupted("Removing the commit's checkout first; a moment."):
            _remove(folder, worktree)


def _remove(folder: Path, worktree: Path) -> None:
    """Remove a worktree; a killed `lab` may have left one."""
    if worktree.exists():
        _git(folder, "worktree", "remove", "--force", str(worktree))
    _git(folder, "worktree", "prune")


def _git(folder: Path, *arguments: str) -> str | None:
    """Return what git prints; None if it fails."""
    try:
        process = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except FileNotFoundError:
        raise LabError("git is not installed. Install it, or leave git = … out.") from None
    return process.stdout.strip() if process.returncode == 0 else None
