"""The demo: the results of its ramps, and the settings that it restores."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from load_lab.demo import demo
from load_lab.demo.chart import draw
from load_lab.demo.wording import demo as table
from load_lab.metrics.windows import Window
from load_lab.paths import ROOT
from load_lab.results.breakpoint import BreakPoint
from load_lab.results.result import Result
from load_lab.settings import load_settings
from load_lab.stack.native.supervision import wait_for

LAB = Path(sys.executable).parent / "lab"


def _ramp(rate, limited_by="target"):
    """Return a ramp that broke at `rate`."""
    windows = [
        Window(end, rate * end / 20, rate, rate, rate, 0.0, 0.0, 20.0 + 50 * end)
        for end in range(5, 30)
    ]
    point = BreakPoint(rate, rate * 1.1, rate, 20, ("p95 1020 ms > 1000 ms",))
    return Result(
        profile="breakpoint-geometric",
        outcome="broke",
        limited_by=limited_by,
        break_point=point,
        windows=windows,
        verdict="broke",
    )


def _rungs():
    first = demo._rung(demo.VARIANTS[0], _ramp(1.5), None)
    second = demo._rung(demo.VARIANTS[1], _ramp(120), first)
    return [first, second, demo._rung(demo.VARIANTS[2], _ramp(6000, "generator_cpu"), second)]


def test_rung_has_sustained_rate_and_its_p95():
    first, second, third = _rungs()
    assert (first.rate, first.p95_ms, first.times) == (1.5, 20 + 50 * 20, None)
    assert (second.times, second.at_least) == (80, False)
    assert third.at_least
    assert "at least 6,000 requests/s" in third.sentence
    assert "limited by the load generator" in third.sentence
    assert "80 × the variant before" in second.sentence


def test_unrecorded_ramp_is_an_error():
    unrecorded = Result(outcome="unrecorded", verdict="not recorded")
    with pytest.raises(demo.LabError, match="not recorded"):
        demo._rung(demo.VARIANTS[0], unrecorded, None)


def test_chart_and_table_have_every_rung(tmp_path):
    settings = load_settings({}).model_dump()
    rungs = [demo.asdict(rung) for rung in _rungs()]
    document = {"rungs": rungs, "bounds": {"p95_ms": 1000}, "settings": settings}
    picture = draw(document, tmp_path / "demo")
    svg = picture.with_suffix(".svg").read_text()
    for rung in rungs:
        assert rung["name"] in svg
    assert "≥ 6,000/s" in svg
    table({**document, "files": {"picture": "results/demo.png"}})


def _interrupt(stack, number, rung):
    """Stop `lab demo` in its ramp `rung`; return its exit code and messages."""
    process = subprocess.Popen(
        [str(LAB), "demo", "--json"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    lines = []
    for line in process.stderr:
        lines.append(line)
        if f"{rung} of 3" in line:
            break
    variant = demo.VARIANTS[rung - 1].changes.options.items()
    wait_for(lambda: variant <= stack.settings().as_env().items(), seconds=30, what="the ramp")
    process.send_signal(number)
    lines += process.stderr.readlines()
    return process.wait(60), "".join(lines)


# Only one `lab` at a time may measure on the stacks of a clone.
@pytest.mark.alone
@pytest.mark.settings("LAB_DETAIL=fast", "LAB_NGINX_CACHE=basic")
@pytest.mark.parametrize(
    ("rung", "number"),
    [
        (1, signal.SIGINT),
        pytest.param(1, signal.SIGTERM, marks=pytest.mark.full),
        pytest.param(2, signal.SIGTERM, marks=pytest.mark.full),
        pytest.param(3, signal.SIGINT, marks=pytest.mark.full),
    ],
)
def test_interrupted_demo_is_one_message_and_restores_settings(lab, stack, rung, number):
    code, output = _interrupt(stack, number, rung)
    settings = stack.settings()
    assert code == 1
    assert "The demo was interrupted. Start it again: lab demo" in output
    assert "Traceback" not in output
    assert (settings.LAB_DETAIL, settings.LAB_NGINX_CACHE) == ("fast", "basic")


@pytest.mark.alone
@pytest.mark.settings("LAB_DETAIL=fast", "LAB_NGINX_CACHE=basic")
@pytest.mark.full
def test_demo_measures_three_increasing_rates(lab, stack):
    before = stack.settings()
    result = lab("demo", "--json")
    assert result.code == 0, result.err
    first, second, third = result.json["rungs"]
    assert 0 < first["rate"] < second["rate"] < third["rate"]
    files = result.json["files"]
    assert json.loads((ROOT / files["result"]).read_text())["rungs"][0]["windows"]
    assert (ROOT / files["picture"]).stat().st_size > 10_000
    assert stack.settings() == before
