"""Commits for tests: in the repository, but of no branch."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from load_lab.paths import ROOT

_IDENTITY = {
    f"GIT_{who}_{what}": "test@example.com"
    for who in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}


def git(*arguments: str, **environ: str) -> str:
    """Return what git prints."""
    result = subprocess.run(
        ["git", "-C", str(ROOT), *arguments],
        env={**os.environ, **_IDENTITY, **environ},
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout.strip()


def commit_with(files: Mapping[str, str | None]) -> str:
    """Return a commit of HEAD with some files changed; None removes one."""
    with TemporaryDirectory() as folder:
        index = {"GIT_INDEX_FILE": f"{folder}/index"}
        git("read-tree", "HEAD", **index)
        for name, text in files.items():
            if text is None:
                git("update-index", "--force-remove", name, **index)
                continue
            blob_file = Path(folder, "blob")
            blob_file.write_text(text)
            blob = git("hash-object", "-w", str(blob_file))
            git("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}", **index)
        return git("commit-tree", git("write-tree", **index), "-p", "HEAD", "-m", "test")
