"""README and docs stay short enough to be read: code and tables count, signs alone do not."""

import re

import pytest

from load_lab.paths import ROOT

PAGES = sorted((ROOT / "docs").rglob("*.md"))
GUIDES = [path for path in PAGES if path.parent.name != "measured"]


def _words(path):
    return sum(1 for word in path.read_text().split() if re.search(r"\w", word))


def test_readme_has_at_most_1000_words():
    assert _words(ROOT / "README.md") <= 1000


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_guide_has_at_most_800_words(path):
    assert _words(path) <= 800


def test_docs_have_at_most_30_000_words():
    assert sum(map(_words, PAGES)) <= 30_000
