"""What panels and marks show of four tests in fifteen minutes, by a real Prometheus."""

import time
from dataclasses import replace
from itertools import count, takewhile
from typing import Any

import pytest

from grafana.src.queries import backend, caches, load, signals
from grafana.src.queries.runs import NEWEST
from grafana.src.queries.selection import variable_matcher
from load_lab.machine.cpu_use import CpuUse
from load_lab.machine.observation import Signals
from load_lab.metrics.push import (
    VERDICT,
    VERDICT_GENERATOR_CPU,
    VERDICT_GOODPUT,
    VERDICT_PERCENTILES,
    push,
    push_end,
    push_verdict,
)
from tests.support.dashboards import (
    DashboardQueries,
    Expression,
    annotation_expressions,
    metric_dashboards,
    panel_expressions,
)
from tests.support.prometheus_server import STALE, running_prometheus, write

TESTS = variable_matcher()
# A time range of 15 minutes on a minute's boundary, as Grafana aligns it; recent enough for writes.
END = (int(time.time()) // 60 - 1) * 60
START = END - 900
STEPS = (5, 15, 60)
# Begin and end of each test, in seconds since START.
RUNS = {"a": (62, 121), "b": (205, 219), "c": (400, 466), "d": (700, 763)}
# The settings of the stack, with a gap of half a minute, and from when on.
SETTINGS = (("naive", 0, 300), ("fast", 330, 500), ("naive", 500, 640), ("orm", 640, 900))
BREAKS = {"a": (100.3, 72.5, "CPU of the backend"), "c": (450.7, 40.0, "cause not clear")}
# Counters of a service that nobody has seen before, with the exporter that they are from.
LATE = {
    "lab_nginx_requests_total": ("mtail", {"status": "499", "cache": "-"}),
    "lab_cache_answers_total": ("backend", {"layer": "redis", "outcome": "hit"}),
    "lab_body_builds_total": ("backend", {"route": "hotel_detail"}),
    "lab_shed_requests_total": ("backend", {}),
    "lab_nginx_upstream_seconds_count": ("mtail", {}),
    "lab_pg_statement_calls_total": ("postgres-exporter", {"statement": "SELECT 1"}),
}
FIRST, TOTAL = 125, 140
PERCENTILES = {VERDICT_PERCENTILES[0.5]: 0.01, VERDICT_PERCENTILES[0.95]: 0.0186}


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with running_prometheus(tmp_path_factory.mktemp("prometheus")) as address:
        _write_runs(address)
        _write_scraped(address)
        yield address


def _write_runs(url: str) -> None:
    for testid, (begin, end) in RUNS.items():
        labels = {"testid": testid}
        write(url, "test:running", labels, _ended(_every(5, begin, end), 1))
        seconds = _every(1, begin, end)
        write(url, "k6_vus", labels, _ended(seconds, 3))
        write(url, "k6_lab_scenario_start_seconds", labels, _ended(seconds, START + begin))
        write(url, "k6_lab_target_rate", {**labels, "unit": "requests"}, _ended(seconds, 20))
        requests = {**labels, "name": "detail", "expected_response": "true", "status": "200"}
        growing = [(at, 20.0 * number) for number, at in enumerate(seconds, start=1)]
        write(url, "k6_http_reqs_total", requests, growing)
        failures = {**requests, "expected_response": "false", "status": "503", "error_code": "1503"}
        # The first push of failures already has seven.
        times = (seconds[-5], seconds[-2])
        write(url, "k6_http_reqs_total", failures, zip(times, (7.0, 30.0), strict=True))
        _push_signals(url, testid, seconds)
    for testid, (at, rate, cause) in BREAKS.items():
        values = {VERDICT: rate, VERDICT_GOODPUT: 41.0, VERDICT_GENERATOR_CPU: 0.47, **PERCENTILES}
        labels = {"testid": testid, "outcome": "broke", "cause": cause}
        push_verdict(f"{url}/api/v1/write", labels, START + at, values)
    held = {"testid": "d", "outcome": "held"}
    push_verdict(
        f"{url}/api/v1/write",
        held,
        START + 763,
        {VERDICT: 0.0, VERDICT_GOODPUT: 20.0, **PERCENTILES},
    )


def _push_signals(url: str, testid: str, seconds: list[float]) -> None:
    """Push what `lab` does: CPUs that are full from the middle of a test on, and a queue."""
    receiver, middle = f"{url}/api/v1/write", seconds[len(seconds) // 2]
    seen = Signals(at=0, samples=10, in_flight=30.0, queued=500.0, sessions={"cpu": 2.0, "io": 0})
    pushed = [replace(seen, at=at) for at in seconds]
    for second in pushed:
        cpu = CpuUse(second.at, 1.0 if second.at >= middle else 0.3, 0.2, {})
        push(receiver, testid, second, [cpu])
    push_end(receiver, testid, pushed, [cpu])


def _write_scraped(url: str) -> None:
    scrapes = _every(5, 0, 900)
    for instance in {instance for instance, _ in LATE.values()}:
        write(url, "up", {"instance": instance}, [(at, 1) for at in scrapes])
    for name, (instance, labels) in LATE.items():
        late = [at for at in scrapes if at >= START + 460]
        values = [(at, FIRST if at < START + 600 else TOTAL) for at in late]
        write(url, name, {"instance": instance, **labels}, values)
    for variant in sorted({variant for variant, *_ in SETTINGS}):
        samples: list[tuple[float, float | None]] = []
        for name, begin, end in SETTINGS:
            if name == variant:
                samples += _ended(_every(5, begin, end), 1)
        write(url, "lab_settings_info", {"lab_detail": variant}, samples)
    write(url, "lab_worker_slots", {}, [(at, 2) for at in scrapes])
    # Of the services alone, and late: the fallback.
    write(url, "side:cpu_cores:rate", {"side": "target"}, [(at, 0.32) for at in scrapes])
    write(url, "lab_cpus", {"side": "target"}, [(at, 1) for at in scrapes])


def _every(step: int, begin: float, end: float) -> list[float]:
    """Return times off the steps of the panels."""
    return list(takewhile(lambda at: at < START + end, count(START + begin + 0.25, step)))


def _ended(times: list[float], value: float) -> list[tuple[float, float | None]]:
    # The next scrape, evaluation or the end of k6 ends a series.
    return [*((at, value) for at in times), (times[-1] + times[1] - times[0], STALE)]


def _queries(url: str, step: int = 5, uid: str = "lab-load-test", **chosen: str):
    dashboard = next(one for one in metric_dashboards() if one["uid"] == uid)
    chosen = chosen or {"testid": ".+"}
    return DashboardQueries(url, dashboard, START, END, step=step, **chosen)


def _series(queries: DashboardQueries, expr: str) -> list[dict[str, Any]]:
    return queries.result(Expression("", "", expr))


def _values(queries: DashboardQueries, expr: str) -> dict[float, float]:
    (series,) = _series(queries, expr)
    return {at - START: float(value) for at, value in series["values"]}


def _stat(queries: DashboardQueries, uid: str, title: str) -> float:
    dashboard = next(one for one in metric_dashboards() if one["uid"] == uid)
    expressions = panel_expressions(dashboard)
    (one,) = (each for each in expressions if each.place == f"panel {title!r}" and each.instant)
    (series,) = queries.result(one)
    return float(series["value"][1])


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    "expr",
    [
        pytest.param(backend.abandoned_requests(), id="abandoned"),
        pytest.param(backend.SHED, id="shed"),
        pytest.param(caches.backend_cache_lookups(), id="cache lookups"),
        pytest.param(caches.builds("route"), id="builds"),
        pytest.param(caches.upstream_requests(), id="upstream"),
    ],
)
def test_first_value_of_a_late_counter_is_drawn(url, expr, step):
    rates = _values(_queries(url, step), expr)
    window = max(step + 5, 20)
    assert max(rates.values()) * window == pytest.approx(FIRST)
    late = [rate for at, rate in rates.items() if at > 560]
    assert max(late) * window == pytest.approx(TOTAL - FIRST)
    if step == 5:
        assert sum(rates.values()) * step == pytest.approx(TOTAL)


def test_first_calls_of_a_statement_count(url):
    query = Expression("", "", backend.statement_calls(), instant=True)
    (series,) = _queries(url).result(query)
    assert float(series["value"][1]) == pytest.approx(TOTAL, rel=0.02)


def test_exporter_that_appears_with_its_counter_adds_nothing(url):
    """Prometheus was started later than the service."""
    scrapes = [(at, 1000.0) for at in _every(5, 300, 900)]
    write(url, "lab_nginx_requests_total", {"instance": "new", "status": "429"}, scrapes)
    write(url, "up", {"instance": "new"}, [(at, 1) for at, _ in scrapes])
    rates = _values(_queries(url), backend.rejected_requests())
    assert set(rates.values()) == {0}


@pytest.mark.parametrize("step", STEPS)
def test_sums_of_k6s_rates_are_its_counts(url, step):
    queries = _queries(url, step)
    errors = sum(_values(queries, load.errors_by_status(TESTS)).values()) * step
    assert errors == pytest.approx(30 * len(RUNS))
    seconds = sum(len(_every(1, *run)) for run in RUNS.values())
    total = 20 * seconds + 30 * len(RUNS)
    # The last push may be in a step that begins after the last one of virtual users.
    achieved = sum(_values(queries, load.achieved_rate(TESTS)).values()) * step
    assert achieved == pytest.approx(total, rel=0.01)
    assert _stat(queries, "lab-load-test", "Requests in total") == total


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    ("name", "times"),
    [
        ("test start", [begin for begin, _ in RUNS.values()]),
        ("test end", [end for _, end in RUNS.values()]),
        ("layer switch", [begin for _, begin, _ in SETTINGS[1:]]),
        ("broke", [at for at, _, _ in BREAKS.values()]),
    ],
)
def test_each_event_has_one_mark_at_every_step(url, name, times, step):
    for dashboard in metric_dashboards():
        if dashboard["uid"] == "lab-compare":
            continue
        (mark,) = (
            one for one in annotation_expressions(dashboard) if one.place.endswith(f"{name!r}")
        )
        series = _queries(url, step).result(mark)
        marks = sorted(at - START for one in series for at, _ in one["values"])
        assert len(marks) == len(times), dashboard["title"]
        # `running` has a sample every 5 s.
        late = [mark - at for mark, at in zip(marks, times, strict=True)]
        assert all(-6 <= delay <= step + 1 for delay in late), late


def test_newest_test_is_the_default_and_a_choice_stays(url):
    shown = {
        choice: set(_queries(url, testid=choice).values["tests"].split("|"))
        for choice in (NEWEST, "a", "a|c", ".+")
    }
    assert shown == {NEWEST: {"d"}, "a": {"a"}, "a|c": {"a", "c"}, ".+": set(RUNS)}
    assert _queries(url, testid="a|c").values["last"] == "c"
    assert _queries(url, uid="lab-break-point", testid=NEWEST).values["tests"] == "d"


def test_full_cpu_is_drawn_in_the_second_in_which_it_fills(url):
    busy = _values(_queries(url, testid="c"), signals.cpu_busy("target", TESTS))
    begin, end = RUNS["c"]
    middle = (begin + end) / 2
    assert {value for at, value in busy.items() if middle + 5 <= at < end} == {1}
    assert {value for at, value in busy.items() if begin < at <= middle} == {0.3}
    # Without a tail of the recorded rate.
    assert max(busy) <= end + 1


def test_cpu_of_a_k6_that_no_lab_started_is_that_of_the_services(url):
    samples = [(at, 1.0) for at in _every(5, 800, 850)]
    write(url, "test:running", {"testid": "by-hand"}, samples)
    busy = _values(_queries(url, tests="by-hand"), signals.cpu_busy("target", TESTS))
    assert set(busy.values()) == {0.32}


def test_slots_are_at_most_full_and_each_name_has_one_line(url):
    queries = _queries(url)
    assert set(_values(queries, signals.slots_share(TESTS)).values()) == {1}
    assert set(_values(queries, signals.seen("queued", TESTS)).values()) == {500}
    states = [one["metric"] for one in _series(queries, signals.seen("sessions", TESTS))]
    assert states == [{"state": "cpu"}]


@pytest.mark.parametrize("testid", BREAKS)
def test_break_point_shows_the_figures_of_the_verdict(url, testid):
    queries = _queries(url, uid="lab-break-point", testid=testid)
    _, rate, _ = BREAKS[testid]
    for title, value in (("Broke at", rate), ("Best goodput", 41.0), ("Generator CPU", 0.47)):
        assert _stat(queries, "lab-break-point", title) == pytest.approx(value)


def test_p95_of_a_test_is_that_of_its_result(url):
    """Not the histograms', which have no first second."""
    for testid in ("a", "d"):
        queries = _queries(url, testid=testid)
        assert _stat(queries, "lab-load-test", "p95 in total") == pytest.approx(0.0186)
    # Of several tests there is no such value.
    dashboard = next(one for one in metric_dashboards() if one["uid"] == "lab-load-test")
    (p95,) = (one for one in panel_expressions(dashboard) if "p95 in total" in one.place)
    assert _queries(url, testid="a|d").result(p95) == []


def test_test_that_held_has_no_break_although_a_limit_was_exceeded_for_a_moment(url):
    queries = _queries(url, uid="lab-break-point", testid="d")
    dashboard = next(one for one in metric_dashboards() if one["uid"] == "lab-break-point")
    stats = {one.place: one for one in panel_expressions(dashboard) if one.instant}
    assert queries.result(stats["panel 'Broke at'"]) == []


def test_comparison_marks_only_its_own_tests(url):
    dashboard = next(one for one in metric_dashboards() if one["uid"] == "lab-compare")
    at = 946684800
    queries = DashboardQueries(url, dashboard, at, at + 300, testid_a="c", testid_b="a")
    marks = {
        one.place.split("'")[1]: [
            moment - at for each in queries.result(one) for moment, _ in each["values"]
        ]
        for one in annotation_expressions(dashboard)
    }
    assert marks.pop("A: broke") == [55.0]
    assert marks.pop("B: broke") == [40.0]
    assert {name: len(times) for name, times in marks.items()} == {
        "A: test start": 1,
        "A: test end": 1,
        "A: layer switch": 0,
        "B: test start": 1,
        "B: test end": 1,
        "B: layer switch": 0,
    }


def test_other_tests_begin_with_the_next_older_one(url):
    dashboard = next(one for one in metric_dashboards() if one["uid"] == "lab-compare")
    at = 946684800
    assert DashboardQueries(url, dashboard, at, at + 300).values["testid_b"] == "c"
    chosen = DashboardQueries(url, dashboard, at, at + 300, testid_a="c")
    assert chosen.values["testid_b"] == "b"
    begin, end = (int(chosen.values[f"{name}_a"]) / 1000 for name in ("from", "to"))
    assert begin < START + RUNS["c"][0] < START + RUNS["c"][1] < end
