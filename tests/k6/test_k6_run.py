"""Real k6 runs against the real stack, read back from the real Prometheus."""

import json
import math
import time

import pytest

from load_lab.load.summary import read_summary
from load_lab.metrics import queries
from load_lab.metrics.counters import PUSH_SECONDS
from load_lab.metrics.prometheus import Prometheus
from load_lab.paths import ROOT

# k6 fixes the growth factor of its native histograms at 1.1.
BUCKET = 1.1

FIELDS = {
    *("testid", "requests", "rps", "goodput", "failed", "p95_ms", "dropped_iterations"),
    *("limited_by", "verdict", "files"),
}


@pytest.fixture(scope="module")
def smoke(lab, stack):
    # Many virtual users, so that the percentile does not depend on a single response.
    result = lab("k6", "smoke", "--scenario", "list", "--vus", "50", "--duration", "6s", "--json")
    assert result.code == 0, result.err
    return result.json


@pytest.fixture(scope="module")
def smoke_summary(smoke):
    return json.loads((ROOT / smoke["files"]["summary"]).read_text())


# Two workers that wait 0.3 s for each page answer 7/s, however quick the machine is.
slow_target = pytest.mark.settings("LAB_LATENCY_MS=100")
RATE = 40


@pytest.fixture(scope="module")
def ramp(lab, stack):
    """Run a complete ramp beyond the capacity of a slow target."""
    assert stack.settings().LAB_LATENCY_MS
    flags = ("--rate", str(RATE), "--duration", "10s", "--scenario", "list", "--json")
    # More virtual users would only queue, and the test would wait for them.
    result = lab("k6", "breakpoint", *flags, "--no-early-stop", MAX_VUS="60")
    assert result.code == 0, result.err
    return result.json


@pytest.fixture
def prometheus(stack):
    return Prometheus(stack.settings().prometheus_url)


def test_smoke_passes_without_a_failed_request(smoke):
    assert set(smoke) >= FIELDS
    assert smoke["failed"] == 0
    assert smoke["requests"] > 100
    assert smoke["verdict"].startswith("passed")
    assert smoke["limited_by"] == "none"
    assert smoke["successes"] == smoke["requests"]
    assert sum(each["requests"] for each in smoke["by_operation"]) == smoke["requests"]
    assert smoke["target"]["name"] == "hotel"
    assert smoke["cpu_ms_per_request"]["backend"] > 0.1
    # The best 5 s are at least as fast as the mean; a push may arrive slightly late.
    assert 0.9 * smoke["rps"] < smoke["max_rps"] < 3 * smoke["rps"]
    assert (smoke["retries"], smoke["unfinished"], smoke["websockets"]) == (0, None, None)


@slow_target
def test_every_file_of_a_run_exists(ramp):
    assert all((ROOT / path).exists() for path in ramp["files"].values())
    assert (ROOT / ramp["files"]["picture"]).read_bytes().startswith(b"\x89PNG")


def test_prometheus_counts_every_request_that_k6_counts(smoke, smoke_summary, prometheus):
    count = smoke_summary["metrics"]["http_reqs"]["values"]["count"]
    completeness = smoke["recorded"]
    assert (completeness["k6"], completeness["prometheus"], completeness["seconds_missing"]) == (
        *(count, count),
        0,
    )
    assert prometheus.instant(queries.requests(queries.one_run(smoke["testid"]))) == count
    load_matchers = queries.load(queries.one_run(smoke["testid"]))
    query = f"sum(max_over_time({queries.REQUESTS}{{{load_matchers}}}[1h]))"
    assert prometheus.instant(query) == smoke["requests"]


def test_prometheus_p95_is_within_one_bucket_of_k6_p95(smoke, prometheus):
    load_matchers = queries.load(queries.one_run(smoke["testid"]))
    end = max(_samples(prometheus, f"{queries.REQUESTS}{{{load_matchers}}}"))
    histogram = f"sum({queries.DURATION}{{{load_matchers}}} @ {end})"
    seconds = prometheus.instant(f"histogram_quantile(0.95, {histogram})")
    assert seconds is not None
    assert abs(math.log(seconds * 1000 / smoke["p95_ms"])) <= math.log(BUCKET)


def _samples(prometheus, selector):
    now = time.time()
    return {
        at: value
        for series in prometheus.samples(selector, now - 600, now).values()
        for at, value in series.items()
    }


def test_every_series_ends_with_the_run(smoke, prometheus):
    run_matcher = f'{{testid="{smoke["testid"]}"}}'
    assert prometheus.instant(f'count({{__name__=~"k6_.+",testid="{smoke["testid"]}"}})') is None
    times = sorted(_samples(prometheus, f"{queries.VIRTUAL_USERS}{run_matcher}"))
    # k6 pushes each second; on a busy machine the first and the last push may be missing.
    assert smoke["prometheus"]["start"] - 1 <= times[0]
    assert times[-1] <= smoke["prometheus"]["end"] + 1
    # The rule test:running, evaluated in the middle of the run.
    middle = (times[0] + times[-1]) / 2
    running = f"group by (testid) ({queries.VIRTUAL_USERS}{run_matcher} @ {middle})"
    assert prometheus.instant(running) == 1


@slow_target
def test_target_rate_matches_the_plan_at_every_sample(ramp, prometheus):
    summary = read_summary(ROOT / ramp["files"]["summary"])
    plan, started = summary.plan, summary.started
    rates = _samples(prometheus, f'{queries.TARGET_RATE}{{testid="{ramp["testid"]}"}}')
    planned_rates = {
        at - started: rate for at, rate in rates.items() if at - started < plan.seconds
    }
    assert len(planned_rates) >= plan.seconds - 1
    for seconds, rate in planned_rates.items():
        # The rate rises by 4 requests/s each second; k6's timestamps are in milliseconds.
        assert rate == pytest.approx(RATE / 10 * seconds, abs=0.2)
    assert rates[max(rates)] == 0 or max(rates) - started <= plan.seconds


def test_responses_in_time_are_counted_exactly(smoke, smoke_summary, prometheus):
    query = (
        f"sum(last_over_time({queries.counters(queries.one_run(smoke['testid']))['in_time']}[1d]))"
    )
    count = smoke_summary["metrics"]["lab_answers_in_time"]["values"]["count"]
    assert prometheus.instant(query) == count
    assert smoke["goodput"] == pytest.approx(count / smoke["seconds"], rel=0.01)


def test_query_at_any_fraction_of_a_second_has_a_result(smoke, smoke_summary, prometheus):
    """Prometheus rounds timestamps to milliseconds."""
    started = smoke_summary["lab"]["started_at_seconds"]
    for nth in range(20):
        end = started + smoke["seconds"] + nth * math.pi / 100 + 2 * PUSH_SECONDS
        query = queries.requests(queries.load(queries.one_run(smoke["testid"])), "status")
        assert prometheus.instant_by_label(query, "status", end) == {"200": smoke["requests"]}


@slow_target
def test_breakpoint_reports_rate_reasons_and_limiting_resource(ramp):
    break_point = ramp["break_point"]
    assert ramp["outcome"] == "broke"
    assert 0 < break_point["offered"] < RATE
    assert 0 < break_point["goodput"] <= break_point["offered"] * 1.2
    assert break_point["reasons"]
    # Other tests may use the generator's CPU; the result must then report it.
    if break_point["generator_cpu"] >= 0.9:
        assert ramp["limited_by"] in ("generator_cpu", "others")
    else:
        assert ramp["limited_by"] != "generator_cpu"
    assert ramp["limited_by"] != "none"
    assert 0 < break_point["rate"] <= break_point["offered"]
    assert f"broke at {break_point['rate']:.1f} requests/s" in ramp["verdict"]
    assert f"offered {break_point['offered']:.1f}/s" in ramp["verdict"]


@slow_target
def test_windows_of_a_run_add_up_to_its_requests(ramp):
    windows = json.loads((ROOT / ramp["files"]["result"]).read_text())["windows"]
    # Windows overlap; every fifth window starts where the previous fifth one ends.
    disjoint = [w for w in windows if w["end"] % 5 == 0]
    responses = sum(window["achieved"] * 5 for window in disjoint)
    # Requests queued at the end of the ramp are answered after it, outside all windows.
    assert 0 < responses <= ramp["requests"]
    assert all(window["goodput"] <= window["achieved"] for window in windows)
    # k6 follows the planned arrival rate: each offered request was either sent or dropped.
    offered = sum(window["offered"] * 5 for window in disjoint)
    assert ramp["requests"] + ramp["dropped_iterations"] == pytest.approx(offered, rel=0.02)


def test_bookings_never_conflict_across_profiles_and_reruns(lab, stack):
    for flags in (
        ("hold", "--rate", "40", "--duration", "8s"),
        ("smoke", "--vus", "3", "--duration", "5s"),
    ):
        result = lab("k6", *flags, "--scenario", "booking", "--json")
        # Whether 40/s is sustained depends on the machine, not on the bookings.
        assert result.code in (0, 1), result.err
        assert result.json["failed"] == 0
        summary = json.loads((ROOT / result.json["files"]["summary"]).read_text())["metrics"]
        assert "lab_bookings_conflicted" not in summary
        created = summary["lab_bookings_created"]["values"]["count"]
        assert created == result.json["requests"] > 0


@slow_target
def test_hold_beyond_capacity_is_a_failed_test(lab, stack):
    flags = ("--rate", "30", "--duration", "10s", "--scenario", "list", "--json")
    result = lab("k6", "hold", *flags, MAX_VUS="50")
    assert result.code == 1
    assert result.json["outcome"] == "broke"


def test_text_output_starts_with_the_verdict(lab, stack):
    result = lab("k6", "smoke", "--scenario", "list", "--vus", "1", "--duration", "3s")
    assert result.code == 0
    assert result.out.startswith("passed: ")
    assert "target on CPU" in result.out
