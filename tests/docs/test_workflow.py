"""CI's workflows run actions of a fixed commit, and the tests that the Makefile runs."""

import re

import pytest
import yaml

from load_lab.paths import ROOT
from tests.machine import PARTS

FOLDER = ROOT / ".github"
TEXTS = {path.stem: path.read_text() for path in FOLDER.rglob("*.yml")}
USED = {action for text in TEXTS.values() for action in re.findall(r"uses: (.+)", text)}


@pytest.mark.parametrize("action", sorted(USED))
def test_action_is_pinned_by_commit(action):
    """A tag can be moved to other code."""
    if action.startswith("./"):
        assert (ROOT / action / "action.yml").exists()
    else:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)


def _commands(workflow: str) -> list[str]:
    jobs = yaml.safe_load(TEXTS[workflow])["jobs"].values()
    return [step["run"] for job in jobs for step in job["steps"] if "run" in step]


def _jobs_run(workflow: str, target: str) -> bool:
    """Return whether jobs run a target of the Makefile, or each of those that it consists of."""
    commands = " ".join(_commands(workflow)).split()
    (parts,) = re.findall(rf"^{target}: (.*?) ##", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return target in commands or set(parts.split()) <= set(commands)


def test_jobs_run_the_parts_of_ci_run():
    parts = re.findall(r"^part make (.+)$", (ROOT / ".ci/run").read_text(), re.MULTILINE)
    assert len(parts) > 3
    # Each job sets up what it needs.
    assert [part for part in parts if part != "setup-dev" and not _jobs_run("ci", part)] == []
    assert _jobs_run("nightly", "test-full")


def test_every_part_of_test_machine_has_a_job():
    (job,) = yaml.safe_load(TEXTS["machine"])["jobs"].values()
    assert job["strategy"]["matrix"]["part"] == list(PARTS)
