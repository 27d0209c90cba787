"""The lengths of experiments in the docs match `lab run --dry-run`."""

import re

import pytest

from lab.experiments import command, files
from lab.paths import ROOT

DOCS = sorted((ROOT / "docs/experiments").glob("*.md"))
_COMMAND = re.compile(
    r"^lab run (\S+)( --quick)? +# (\d+) cells.*?about (\d+) minutes", re.MULTILINE
)
_ROW = re.compile(
    r"^\| \[([a-z0-9-]+)\]\(docs/experiments/.*\| (\d+), (\d+) minutes \|$", re.MULTILINE
)


def _planned(name, quick=""):
    plan = command.plan_of(name, only=[], repeats=None, quick=bool(quick))
    return len(plan.todo), round(plan.seconds / 60)


def _said(text):
    return [
        *((name, quick, cells, minutes) for name, quick, cells, minutes in _COMMAND.findall(text)),
        *((name, "", cells, minutes) for name, cells, minutes in _ROW.findall(text)),
    ]


@pytest.mark.parametrize("path", [ROOT / "README.md", *DOCS], ids=lambda path: path.stem)
def test_cells_and_minutes_match_plan(path):
    for name, quick, cells, minutes in _said(path.read_text()):
        assert (int(cells), int(minutes)) == _planned(name, quick), f"{name}{quick}"


def test_every_experiment_length_is_in_docs_and_readme():
    of_pages = {name for path in DOCS for name, *_ in _said(path.read_text())}
    assert of_pages == set(files.names())
    # The second part of an experiment is in the row of the first.
    rows = {name for name, *_ in _said((ROOT / "README.md").read_text())}
    assert rows == {name for name in files.names() if not name.endswith("-more")}
