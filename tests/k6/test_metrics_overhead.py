"""The tool that measures what pushing metrics costs: what it says, not how much that is."""

import json
import subprocess
import sys

import pytest

from lab.paths import RESULTS, ROOT

TOOL = [sys.executable, str(ROOT / "lab/suites/metrics_overhead.py")]


def _ran(*flags):
    return subprocess.run([*TOOL, *flags], capture_output=True, text=True, check=False)


def test_a_pair_has_both_rates_and_leaves_the_stack_as_it_was(stack):
    before = stack.settings()
    done = _ran("--pairs", "1", "--seconds", "2", "--vus", "4", "--json")
    # How much it is, two seconds can't tell.
    assert done.returncode in (0, 1), done.stderr
    said = json.loads(done.stdout)
    (pair,) = said["runs"]
    rates = pair["with"]["rps"], pair["without"]["rps"]
    assert min(rates) > 100
    assert pair["ratio"] == said["median_ratio"] == pytest.approx(rates[0] / rates[1], abs=0.001)
    assert pair["with"]["cpu_us"] > 0
    assert stack.settings() == before
    # Other tests leave results of their own meanwhile.
    assert list(RESULTS.glob("overhead-*")) == []


@pytest.mark.parametrize("flags", [("--pairs", "0"), ("--seconds", "1"), ("--fast",)])
def test_what_it_does_not_know_is_misuse(flags):
    done = _ran(*flags)
    assert done.returncode == 2
    assert "usage:" in done.stderr
