"""`lab calibrate` on the running stack: counts, break points and limits of reference servers.

Exact response times need a quiet machine and are not checked here.
"""

import json
import shutil
from dataclasses import replace

import pytest

from load_lab.calibrate import calibration, cells
from load_lab.calibrate.noise import Noise
from load_lab.paths import ROOT

# These tests saturate the machine.
pytestmark = pytest.mark.alone

NAMES = ("fixed", "queue", "starved")
# Checks that noise does not change.
COUNTS = ("requests in k6's summary", "requests in Prometheus", "failed requests")


def _require_quiet(document):
    """Skip on a noisy machine: other programs are then the limit and cause false breaks."""
    runs = [run for cell in document["cells"] for run in cell["runs"]]
    reasons = {reason for run in runs for reason in Noise(**run["noise"]).reasons}
    if reasons:
        pytest.skip(f"This machine is too noisy to ask for limits: {'; '.join(sorted(reasons))}.")


def _by_name(document):
    return {
        cell["cell"]: {check["what"]: check for check in cell["checks"]}
        for cell in document["cells"]
    }


@pytest.fixture(scope="module")
def calibration_run(lab, stack):
    """Measure three cells with --quick; yield the output and the stack's previous settings."""
    before = stack.settings()
    names = [option for name in NAMES for option in ("--only", name)]
    result = lab("calibrate", "--quick", *names, "--json")
    assert result.out, result.err
    yield result, before
    shutil.rmtree((ROOT / result.json["files"]["result"]).parent)


def test_counts_are_exact_on_noisy_machine(calibration_run):
    result, _ = calibration_run
    cells_by_name = _by_name(result.json)
    assert list(cells_by_name) == list(NAMES)
    for name, checks in cells_by_name.items():
        for what in COUNTS:
            assert checks[what]["outcome"] == "held", (name, checks[what])
        # A load ran. In parallel with other programs, a starved k6 sent 497 requests.
        assert checks["requests in Prometheus"]["found"] > 100


def test_limit_is_named(calibration_run):
    result, _ = calibration_run
    _require_quiet(result.json)
    cells_by_name = _by_name(result.json)
    limits = {name: checks["limited by"]["found"] for name, checks in cells_by_name.items()}
    assert limits == {"fixed": "none", "queue": "target", "starved": "generator_cpu"}


def test_queue_breaks_at_its_known_rate(calibration_run):
    result, _ = calibration_run
    _require_quiet(result.json)
    checks = _by_name(result.json)["queue"]
    # Twice the tolerance of a quiet machine.
    assert checks["break point"]["found"] == pytest.approx(200, rel=0.1)
    assert checks["goodput at the break"]["found"] == pytest.approx(200, rel=0.1)


def test_document_is_stored_and_stack_is_restored(calibration_run, stack):
    result, before = calibration_run
    document = result.json
    assert json.loads((ROOT / document["files"]["result"]).read_text()) == document
    missed = [c for cell in document["cells"] for c in cell["checks"] if c["outcome"] == "missed"]
    assert result.code == (1 if missed else 0)
    for cell in document["cells"]:
        (run,) = cell["runs"]
        assert run["server"]["requests"] == run["figures"]["requests"]
        assert run["server"]["floor_ms"] < 5
        assert {"steal", "foreign", "cpu_speed", "load_steal"} == run["noise"].keys()
    assert "queue: a target of known capacity" in result.err
    assert stack.settings() == before


def test_wrong_reference_server_is_missed(stack, monkeypatch):
    """The server delays each of four users by 20 ms; the check expects a queue of 300/s."""
    original = next(cell for cell in cells.CELLS if cell.name == "capped")
    changed = replace(original, checks=("break", "counts", "limit"), breaks_at=300)
    monkeypatch.setattr(cells, "CELLS", (changed,))
    document = calibration.run(stack, [], quick=True)
    shutil.rmtree((ROOT / document["files"]["result"]).parent)
    checks = _by_name(document)["capped"]
    assert checks["break point"]["outcome"] == "missed"
    assert calibration.exit_code(document) == 1
    _require_quiet(document)
    assert checks["limited by"]["found"] == "vu_cap"
    assert checks["break point"]["found"] < 4 / 0.020
