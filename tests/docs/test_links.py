"""Every link of the documentation leads to a file of the project."""

import re
import subprocess

import pytest

from load_lab.paths import ROOT

# [text](target) and ![text](target), without a title and an anchor.
_LINK = re.compile(r"\]\(([^)\s#]+)[^)]*\)")
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)

_files = subprocess.run(
    ["git", "ls-files", "*.md", ":!load_lab"], cwd=ROOT, capture_output=True, text=True, check=True
)


@pytest.mark.parametrize("name", _files.stdout.split())
def test_link_targets_exist(name):
    page = ROOT / name
    targets = _LINK.findall(_FENCED.sub("", page.read_text()))
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (page.parent / target).exists()] == []
