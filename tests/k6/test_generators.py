"""Several k6 that share one load: every request counts once, and one that fails is named."""

import math
import os
import signal
import threading
import time
from dataclasses import replace

import pytest

from load_lab.load import generators
from load_lab.load.generators import samples_file
from load_lab.load.load import Load, new_testid
from load_lab.machine.processes import generator_pids
from load_lab.metrics.prometheus import Prometheus
from load_lab.metrics.samples import buckets_off, percentiles, read_samples
from load_lab.metrics.windows import Bounds
from load_lab.paths import project
from load_lab.results.result import METRICS
from load_lab.run.measurement import read_durations as pushed_durations
from load_lab.run.single_run import run_once
from load_lab.stack.native.supervision import wait_for
from load_lab.targets.reference.app import ReferenceApp

# What is tested is the count, not the response time of a busy machine.
BOUNDS = Bounds(p95_ms=60_000, error_ratio=1, achieved_ratio=0.01)


def _run(stack, generators, **options):
    load = Load(
        "hold",
        **{"scenario": "list", "rate": 20, "duration": "10s"} | options,
        bound_ms=60_000,
        testid=new_testid("generators"),
        generators=generators,
    )
    return run_once(stack, ReferenceApp(stack), load, BOUNDS)


@pytest.fixture(scope="module")
def shared(stack):
    return _run(stack, 3, samples=True).result


def test_each_request_counts_once(shared):
    assert shared.outcome == "held", shared.verdict
    assert shared.recorded.complete, shared.recorded.text
    assert shared.requests == sum(one.requests for one in shared.generators)
    assert abs(shared.requests - 200) <= 1
    assert [one.name for one in shared.generators] == ["1", "2", "3"]
    # k6's segments are not exactly even; together they are.
    assert all(one.requests == pytest.approx(200 / 3, abs=4) for one in shared.generators)


def test_generators_start_together_and_their_cpu_is_seen(shared):
    assert min(one.started_after for one in shared.generators) == 0
    assert max(one.started_after for one in shared.generators) < 0.5
    assert all(one.cpu > 0 for one in shared.generators)


def test_report_shows_each_generator(shared, lab):
    assert lab("report", shared.testid).code == 0
    text = (project().results / shared.testid / "report.md").read_text()
    section = text[text.index("## Generators") :]
    for one in shared.generators:
        assert f"| {one.name} | {one.requests} |" in section


def test_merged_histogram_equals_that_of_all_samples(shared, stack):
    folder = project().results / shared.testid
    files = [samples_file(folder, one.name) for one in shared.generators]
    samples = read_samples(files, "list")
    assert len(samples) == shared.requests
    prometheus = Prometheus(stack.settings().prometheus_url)
    start, end = shared.prometheus.start, shared.prometheus.end
    merged = pushed_durations(shared.testid, start, end + 5, prometheus).total()
    assert buckets_off(samples, merged) == 0
    assert buckets_off(samples[:-1], merged) == 1
    expected = percentiles(samples, (50, 95, 99))
    assert shared.percentiles_from == "samples"
    for share, value in expected.items():
        assert METRICS[f"p{share}_ms"].of(shared) == round(value, 1)


@pytest.mark.full
def test_percentiles_of_histograms_are_those_of_a_single_generator(stack):
    result = _run(stack, 2).result
    assert result.percentiles_from == "histograms"
    assert 0 < result.p50_ms <= result.p95_ms <= result.p99_ms
    assert not math.isnan(result.p99_ms)


@pytest.mark.full
def test_no_booking_conflicts(stack):
    result = _run(stack, 4, scenario="booking", rate=40).result
    assert result.failed == 0
    assert result.successes == result.requests == sum(one.requests for one in result.generators)


@pytest.mark.full
@pytest.mark.parametrize(
    ("signals", "fault"),
    [
        ((signal.SIGKILL,), "ended"),
        # k6 then ends as if the lab had stopped it, with a summary.
        ((signal.SIGTERM,), "ended"),
        ((signal.SIGSTOP, signal.SIGCONT), "silent"),
    ],
)
def test_failing_generator_is_named_and_the_target_is_not_judged(stack, signals, fault):
    load = Load(
        "breakpoint",
        "list",
        rate=20,
        duration="16s",
        bound_ms=60_000,
        testid=new_testid("generators"),
        generators=4,
    )
    thread = threading.Thread(target=_signal_third, args=(load.testid, signals))
    thread.start()
    result = run_once(stack, ReferenceApp(stack), load, BOUNDS).result
    thread.join()
    assert result.outcome == "unrecorded"
    (found,) = result.recorded.faults
    assert (found.name, found.fault) == ("3", fault)
    assert "generator 3" in result.verdict
    assert "25% of the load" in result.verdict


@pytest.mark.full
@pytest.mark.parametrize(
    ("stopped_after", "fault"),
    [
        # While it waits for the start: it begins 5 s later.
        (0.3, "late"),
        # Before it knows the start, which is over once it does: it sends nothing.
        (0.0, "ended"),
    ],
)
def test_late_generator_is_named(stack, monkeypatch, stopped_after, fault):
    testid = new_testid("generators")

    def all_are_ready():
        if stopped_after:
            threading.Timer(stopped_after, _signal, (testid, signal.SIGSTOP)).start()
        else:
            _signal(testid, signal.SIGSTOP)
        threading.Timer(6, _signal, (testid, signal.SIGCONT)).start()
        return time.time()

    monkeypatch.setattr(generators, "time", all_are_ready)
    load = Load("hold", "list", rate=20, duration="12s", bound_ms=60_000, testid=testid)
    result = run_once(stack, ReferenceApp(stack), replace(load, generators=4), BOUNDS).result
    assert result.outcome == "unrecorded", result.verdict
    assert [(each.name, each.fault) for each in result.recorded.faults] == [("3", fault)]
    assert "generator 3" in result.verdict


def _signal(testid, number):
    os.kill(generator_pids(testid)["3"], number)


def _signal_third(testid, signals):
    wait_for(lambda: len(generator_pids(testid)) == 4, seconds=30, what="four generators")
    (project().results / testid).mkdir(exist_ok=True)
    pause = threading.Event()
    pause.wait(9)
    for number in signals:
        _signal(testid, number)
        pause.wait(5)


def test_single_user_scenario_is_refused(lab, stack):
    result = lab("k6", "hold", "--scenario", "availability", "--generators", "2")
    assert result.code == 2
    assert "a single generator" in result.err


def test_more_generators_than_cpus_are_a_warning(lab, stack):
    flags = ("--scenario", "list", "--rate", "8", "--duration", "8s", "--generators", "6")
    result = lab("k6", "hold", *flags, "--json")
    assert result.code == 0, result.err
    assert "6 generators share" in result.err
    assert len(result.json["generators"]) == 6
