"""The tool that measures the cost of pushing metrics: tests of its output, not of the cost."""

import json
import subprocess
import sys

import pytest

from load_lab.paths import ROOT, project

TOOL = [sys.executable, str(ROOT / "tests/benchmarks/metrics_overhead.py")]


def _run_tool(*flags):
    return subprocess.run([*TOOL, *flags], capture_output=True, text=True, check=False)


@pytest.mark.full
def test_pair_has_both_rates_and_leaves_the_stack_unchanged(stack):
    before = stack.settings()
    process = _run_tool("--pairs", "1", "--seconds", "2", "--vus", "4", "--json")
    # Two seconds are too short to measure the cost.
    assert process.returncode in (0, 1), process.stderr
    document = json.loads(process.stdout)
    (pair,) = document["runs"]
    rates = pair["with"]["rps"], pair["without"]["rps"]
    assert min(rates) > 100
    assert (
        pair["ratio"] == document["median_ratio"] == pytest.approx(rates[0] / rates[1], abs=0.001)
    )
    assert pair["with"]["cpu_us"] > 0
    assert stack.settings() == before
    # Only the tool's results: other tests may write results at the same time.
    assert list(project().results.glob("overhead-*")) == []


@pytest.mark.parametrize("flags", [("--pairs", "0"), ("--seconds", "1"), ("--fast",)])
def test_invalid_flags_are_usage_errors(flags):
    process = _run_tool(*flags)
    assert process.returncode == 2
    assert "usage:" in process.stderr
