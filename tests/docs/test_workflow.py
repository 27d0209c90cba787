"""CI's workflow runs actions of a fixed commit: a tag can be moved to other code."""

import re

import pytest

from lab.paths import ROOT

WORKFLOW = (ROOT / ".github/workflows/ci.yml").read_text()


@pytest.mark.parametrize("action", sorted(set(re.findall(r"uses: (.+)", WORKFLOW))))
def test_action_is_pinned_by_commit(action):
    assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)
