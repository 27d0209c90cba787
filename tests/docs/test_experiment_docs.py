"""The lengths of experiments in the docs match `lab run --dry-run`."""

import re

import pytest

from load_lab.experiments import files
from load_lab.experiments.plan import plan_of
from load_lab.paths import ROOT

DOCS = sorted((ROOT / "docs/experiments").glob("*.md"))
_COMMAND = re.compile(
    r"^lab run (\S+)( --quick)? +# (\d+) cells.*?about (\d+) minutes", re.MULTILINE
)
_ROW = re.compile(
    r"^\| \[([a-z0-9-]+)\]\(docs/experiments/.*\| (\d+); (\d+) minutes \|$", re.MULTILINE
)


def _plan(name, quick=""):
    plan = plan_of(name, only=[], repeats=None, quick=bool(quick))
    return len(plan.todo), round(plan.seconds(slowness=1) / 60)


def _documented(text):
    return [
        *((name, quick, cells, minutes) for name, quick, cells, minutes in _COMMAND.findall(text)),
        *((name, "", cells, minutes) for name, cells, minutes in _ROW.findall(text)),
    ]


@pytest.mark.parametrize("path", [ROOT / "README.md", *DOCS], ids=lambda path: path.stem)
def test_cells_and_minutes_match_plan(path):
    for name, quick, cells, minutes in _documented(path.read_text()):
        assert (int(cells), int(minutes)) == _plan(name, quick), f"{name}{quick}"


def test_every_experiment_length_is_in_docs_and_readme():
    page_names = {name for path in DOCS for name, *_ in _documented(path.read_text())}
    assert page_names == set(files.names())
    # The second part of an experiment is in the row of the first.
    row_names = {name for name, *_ in _documented((ROOT / "README.md").read_text())}
    assert row_names == {name for name in files.names() if not name.endswith("-more")}
