"""Real k6 runs against the real stack, read back from the real Prometheus."""

import json
import math
import time

import pytest

from lab.analysis import queries
from lab.analysis.prometheus import Prometheus
from lab.load.summary import read_summary
from lab.paths import ROOT
from lab.suites.single_run import responses_by_status

# k6 fixes the growth factor of its native histograms at 1.1.
BUCKET = 1.1

FIELDS = {
    *("testid", "requests", "rps", "goodput", "failed", "p95_ms", "dropped_iterations"),
    *("limited_by", "verdict", "files"),
}


@pytest.fixture(scope="module")
def smoke(lab, stack):
    # Many virtual users, so that the percentile does not depend on a single response.
    said = lab("k6", "smoke", "--scenario", "list", "--vus", "50", "--duration", "6s", "--json")
    assert said.code == 0, said.err
    return said.json


@pytest.fixture(scope="module")
def smoke_summary(smoke):
    return json.loads((ROOT / smoke["files"]["summary"]).read_text())


@pytest.fixture(scope="module")
def broken(lab, stack):
    """Run a complete ramp beyond the capacity of one worker for hotel details."""
    flags = ("--rate", "400", "--duration", "10s", "--scenario", "detail", "--json")
    # More virtual users would only queue, and the test would wait for them.
    said = lab("k6", "breakpoint", *flags, "--no-early-stop", MAX_VUS="300")
    assert said.code == 0, said.err
    return said.json


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
    # The best 5 s are at least as fast as the mean; a push may arrive slightly late.
    assert 0.9 * smoke["rps"] < smoke["max_rps"] < 3 * smoke["rps"]
    assert (smoke["retries"], smoke["unfinished"], smoke["websockets"]) == (0, None, None)


def test_every_file_of_a_run_exists(smoke, broken):
    for run in (smoke, broken):
        assert all((ROOT / path).exists() for path in run["files"].values())
    assert (ROOT / broken["files"]["picture"]).read_bytes().startswith(b"\x89PNG")


def test_prometheus_counts_every_request_that_k6_counts(smoke, smoke_summary, prometheus):
    counted = smoke_summary["metrics"]["http_reqs"]["values"]["count"]
    recorded = smoke["recorded"]
    assert (recorded["k6"], recorded["prometheus"], recorded["seconds_missing"]) == (
        *(counted, counted),
        0,
    )
    assert prometheus.instant(queries.requests_of_whole_run(smoke["testid"])) == counted
    of_load = queries.selector(smoke["testid"])
    query = f"sum(max_over_time({queries.REQUESTS}{{{of_load}}}[1h]))"
    assert prometheus.instant(query) == smoke["requests"]


def test_prometheus_p95_is_within_one_bucket_of_k6_p95(smoke, prometheus):
    of_load = queries.selector(smoke["testid"])
    end = max(_sampled(prometheus, f"{queries.REQUESTS}{{{of_load}}}"))
    histogram = f"sum({queries.DURATION}{{{of_load}}} @ {end})"
    seconds = prometheus.instant(f"histogram_quantile(0.95, {histogram})")
    assert seconds is not None
    assert abs(math.log(seconds * 1000 / smoke["p95_ms"])) <= math.log(BUCKET)


def _sampled(prometheus, selector):
    now = time.time()
    return {
        at: value
        for series in prometheus.samples(selector, now - 600, now)
        for at, value in series.items()
    }


def test_every_series_ends_with_the_run(smoke, prometheus):
    of_run = f'{{testid="{smoke["testid"]}"}}'
    assert prometheus.instant(f'count({{__name__=~"k6_.+",testid="{smoke["testid"]}"}})') is None
    beats = sorted(_sampled(prometheus, f"{queries.VIRTUAL_USERS}{of_run}"))
    lasted = beats[-1] - beats[0]
    assert lasted == pytest.approx(smoke["seconds"], abs=2)
    # The rule test:running, evaluated in the middle of the run.
    inside = (beats[0] + beats[-1]) / 2
    running = f"group by (testid) ({queries.VIRTUAL_USERS}{of_run} @ {inside})"
    assert prometheus.instant(running) == 1


def test_target_rate_matches_the_plan_at_every_sample(broken, prometheus):
    summary = read_summary(ROOT / broken["files"]["summary"])
    plan, started = summary.plan, summary.started
    rates = _sampled(prometheus, f'{queries.TARGET_RATE}{{testid="{broken["testid"]}"}}')
    during = {at - started: rate for at, rate in rates.items() if at - started < plan.seconds}
    assert len(during) >= plan.seconds - 1
    for seconds, rate in during.items():
        # The rate rises by 40 requests/s each second; k6's timestamps are in milliseconds.
        assert rate == pytest.approx(40 * seconds, abs=2)
    assert rates[max(rates)] == 0 or max(rates) - started <= plan.seconds


def test_responses_in_time_are_counted_exactly(smoke, smoke_summary, prometheus):
    query = f"sum(last_over_time({queries.counters(smoke['testid'])['in_time']}[1d]))"
    counted = smoke_summary["metrics"]["lab_answers_in_time"]["values"]["count"]
    assert prometheus.instant(query) == counted
    assert smoke["goodput"] == pytest.approx(counted / smoke["seconds"], rel=0.01)


def test_query_at_any_fraction_of_a_second_has_a_result(smoke, smoke_summary, prometheus):
    """Prometheus rounds timestamps to milliseconds."""
    started = smoke_summary["lab"]["started_at_seconds"]
    for nth in range(20):
        seconds = smoke["seconds"] + nth * math.pi / 100
        found = responses_by_status(prometheus, smoke["testid"], started, seconds)
        assert found == {"200": smoke["requests"]}


def test_breakpoint_reports_rate_reasons_and_limiting_resource(broken):
    found = broken["break_point"]
    assert broken["outcome"] == "broke"
    assert 0 < found["offered"] < 400
    assert 0 < found["goodput"] <= found["offered"] * 1.2
    assert found["reasons"]
    # Other programs on this machine may use the generator's CPU; the result must then report it.
    assert (broken["limited_by"] == "generator_cpu") == (found["generator_cpu"] >= 0.9)
    assert broken["limited_by"] != "none"
    assert 0 < found["rate"] <= found["offered"]
    assert f"broke at {found['rate']:.1f} requests/s" in broken["verdict"]
    assert f"offered {found['offered']:.1f}/s" in broken["verdict"]


def test_windows_of_a_run_add_up_to_its_requests(broken):
    windows = json.loads((ROOT / broken["files"]["result"]).read_text())["windows"]
    # Windows overlap; every fifth window starts where the previous fifth one ends.
    apart = [w for w in windows if w["end"] % 5 == 0]
    during_the_ramp = sum(window["achieved"] * 5 for window in apart)
    # Requests queued at the end of the ramp are answered after it, outside all windows.
    assert 0 < during_the_ramp <= broken["requests"]
    assert all(window["goodput"] <= window["achieved"] for window in windows)
    # k6 follows the planned arrival rate: each offered request was either sent or dropped.
    offered = sum(window["offered"] * 5 for window in apart)
    assert broken["requests"] + broken["dropped_iterations"] == pytest.approx(offered, rel=0.02)


def test_bookings_never_conflict_across_profiles_and_reruns(lab, stack):
    for flags in (
        ("hold", "--rate", "40", "--duration", "8s"),
        ("smoke", "--vus", "3", "--duration", "5s"),
    ):
        said = lab("k6", *flags, "--scenario", "booking", "--json")
        # Whether 40/s is sustained depends on the machine, not on the bookings.
        assert said.code in (0, 1), said.err
        assert said.json["failed"] == 0
        summary = json.loads((ROOT / said.json["files"]["summary"]).read_text())["metrics"]
        assert "lab_bookings_conflicted" not in summary
        created = summary["lab_bookings_created"]["values"]["count"]
        assert created == said.json["requests"] > 0


def test_hold_beyond_capacity_is_a_failed_test(lab, stack):
    flags = ("--rate", "200", "--duration", "10s", "--scenario", "detail", "--json")
    # A queue of 100 is enough for a load that is not sustained; see above.
    said = lab("k6", "hold", *flags, MAX_VUS="100")
    assert said.code == 1
    assert said.json["outcome"] == "broke"


def test_text_output_starts_with_the_verdict(lab, stack):
    said = lab("k6", "smoke", "--scenario", "list", "--vus", "1", "--duration", "3s")
    assert said.code == 0
    assert said.out.startswith("passed: ")
    assert "target on CPU" in said.out
