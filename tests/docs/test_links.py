"""Every link of the documentation leads to a file of the project, and to a heading there."""

import re
import subprocess

import pytest

from load_lab.paths import ROOT

# [text](target#anchor) and ![text](target), without a title.
_LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]*))?[^)]*\)")
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)

_files = subprocess.run(
    ["git", "ls-files", "*.md", ":!load_lab"], cwd=ROOT, capture_output=True, text=True, check=True
)


def _anchors(page):
    """Return the anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.strip().lower()).replace(" ", "-") for each in headings}


@pytest.mark.parametrize("name", _files.stdout.split())
def test_link_targets_exist(name):
    page = ROOT / name
    links = _LINK.findall(_FENCED.sub("", page.read_text()))
    local = [(page.parent / path if path else page, a) for path, a in links if "://" not in path]
    assert [str(target) for target, _ in local if not target.exists()] == []
    pages = [(target, anchor) for target, anchor in local if anchor and target.suffix == ".md"]
    assert [f"{target}#{a}" for target, a in pages if a not in _anchors(target)] == []
