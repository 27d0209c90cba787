"""`lab calibrate` on a noisy machine: repeated and void measurements."""

from dataclasses import replace

import pytest

from load_lab.calibrate import calibration
from load_lab.calibrate.checks import compare, variation
from load_lab.calibrate.noise import Noise, unsteady
from load_lab.paths import ROOT
from tests.support.calibrate_samples import BY_NAME, REFERENCE, RESULT, SAMPLE


def _repeats(goodputs, steal=0.0, works=None):
    noise = Noise(steal, 0, 1.0)
    works = works or [5.0] * len(goodputs)
    return [
        replace(
            SAMPLE,
            result=RESULT.model_copy(update={"goodput": goodput}),
            reference=replace(REFERENCE, work_seconds=work * REFERENCE.requests / 1000),
            noise=noise,
        )
        for goodput, work in zip(goodputs, works, strict=True)
    ]


def _spread(runs):
    """Return the checks of the goodputs: as measured, and scaled to one CPU speed."""
    return [check for check in compare(BY_NAME["repeated"], runs) if check.allowed]


def _outcomes(*goodputs, **options):
    return [check.outcome for check in _spread(_repeats(*goodputs, **options))]


def test_repeats_may_differ_by_five_percent():
    assert variation([90, 100, 110]) == pytest.approx(0.1)
    assert variation([100]) is None
    assert _outcomes([100, 102, 98]) == ["held", "held"]
    assert _outcomes([100, 110, 90]) == ["missed", "missed"]
    assert _outcomes([100]) == ["missed", "missed"]


def test_repeats_on_noisy_machine_are_void():
    raw, _ = _spread(_repeats([100, 110, 90], steal=0.06))
    assert (raw.outcome, raw.void) == (
        "void",
        "the hypervisor took 6% of the CPU time",
    )
    assert _outcomes([100, 101, 99], steal=0.06) == ["held", "held"]


def test_slower_cpu_makes_check_void():
    """A miss remains if the goodputs differ by more than the CPU time of the work."""
    raw, _ = _spread(_repeats([100, 120, 80], works=[5.0, 4.17, 6.25]))
    assert raw.void == "the same work took 4.2 ms of the CPU in one run and 6.2 in another"
    assert _outcomes([100, 120, 80], works=[5.0, 4.17, 6.25]) == ["void", "held"]
    assert _outcomes([100, 120, 80], works=[5.0, 6.25, 4.17]) == ["void", "missed"]


def _run_with_steal(steal, p95=20.1):
    return replace(
        SAMPLE,
        result=RESULT.model_copy(update={"p95_ms": p95}),
        noise=Noise(steal, 0.0, None),
    )


def test_steal_from_generator_cpu_makes_check_void():
    """Steal of 0.9 % of two CPUs is 1.8 % of the generator's one."""
    measurement = replace(
        _run_with_steal(0.009, p95=23), noise=Noise(0.009, 0.0, None, load_steal=0.018)
    )
    checks = {check.what: check for check in compare(BY_NAME["fixed"], [measurement])}
    assert checks["k6's p95"].void == "the hypervisor took 1.8% of the generator's CPU time"
    assert checks["k6's p95"].outcome == "void"


@pytest.mark.parametrize(("steal", "outcome"), [(0.009, "missed"), (0.02, "void")])
def test_response_times_with_high_steal_are_void(steal, outcome):
    checks = {
        check.what: check for check in compare(BY_NAME["fixed"], [_run_with_steal(steal, p95=23)])
    }
    assert checks["k6's p95"].outcome == outcome
    assert ("2.0% of the CPU time was taken" in checks["k6's p95"].void) == (outcome == "void")
    assert all(check.outcome == "held" for what, check in checks.items() if what != "k6's p95")


@pytest.mark.parametrize(
    "wrong", [{"p50_ms": 21}, {"p95_ms": None}, {"p99_ms": 61}], ids=["p50", "none", "thrice"]
)
def test_noise_does_not_excuse_median_missing_or_tripled_values(wrong):
    run = replace(_run_with_steal(0.5), result=RESULT.model_copy(update=wrong))
    (name,) = wrong
    outcomes = {check.what: check.outcome for check in compare(BY_NAME["fixed"], [run])}
    assert outcomes[f"k6's {name.removesuffix('_ms')}"] == "missed"


@pytest.mark.parametrize(
    ("name", "steal", "lost_share", "tries"),
    [
        ("fixed", [0.0, 0.5], 0.0, 1),
        ("fixed", [0.5, 0.0], 0.0, 2),
        ("fixed", [0.5, 0.2, 0.3], 0.2, 3),
        ("queue", [0.5, 0.0], 0.5, 1),
    ],
)
def test_times_are_measured_again_until_machine_is_quiet(
    monkeypatch, name, steal, lost_share, tries
):
    measurements = iter([_run_with_steal(share) for share in steal])
    monkeypatch.setattr(calibration, "measure", lambda *_: next(measurements))
    measurement = calibration._measure_quietest(None, None, BY_NAME[name], ROOT / "fixed-1")
    assert (measurement.noise.lost_share, measurement.tries) == (lost_share, tries)


def test_noisy_run_is_named():
    quiet, loud = Noise(0.0, 0.0, 10.0), Noise(0.0, 0.3, 8.0)
    assert unsteady([("fixed", quiet), ("queue", quiet)]) == []
    assert unsteady([("fixed", quiet), ("queue", loud)]) == [
        "queue: other programs used 30% of the CPU time",
        "the CPUs were 1.25 times as fast in fixed as in queue",
    ]
