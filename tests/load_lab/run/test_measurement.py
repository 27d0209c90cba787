"""Metrics that only some scenarios and profiles have, read from k6 summaries."""

from pathlib import Path

from load_lab.load.k6 import Run
from load_lab.load.load import Load
from load_lab.load.summary import parse_summary
from load_lab.results.completeness import Completeness
from load_lab.run.measurement import RunData, metrics_of
from load_lab.settings import load_settings
from load_lab.targets.target import PlainServer

TARGET = PlainServer("server", "http://localhost", "a server")


def _result(**metrics):
    """Return the result of a run whose summary contains `metrics`."""
    summary_metrics = {name: {"values": values} for name, values in metrics.items()}
    lab = {"scenario": "workbench", "load_seconds": 5, "duration_seconds": 4}
    summary = parse_summary({"lab": lab, "metrics": summary_metrics})
    run = Run(Load("closed"), TARGET, Path(), 0, 5, False, [], load_settings({}))
    return metrics_of(run, summary, RunData(0, Completeness(7, 7, 5, 0), []))


def test_started_request_without_answer_is_unfinished():
    counts = {"lab_begun": {"count": 100}, "http_reqs": {"count": 95}}
    assert _result(**counts).unfinished == 5
    # A retry is the same request of the same user.
    assert _result(**counts, lab_retries={"count": 3}).unfinished == 8
    assert _result(http_reqs={"count": 95}).unfinished is None


def test_sockets_are_counted_only_if_opened():
    assert _result().websockets is None
    delay = {"count": 8, "p(50)": 2, "p(95)": 3.25, "max": 9}
    metrics = {"lab_ws_connections": {"max": 40, "value": 0}, "lab_ws_lost": {"count": 1}}
    sockets = _result(**metrics, lab_ws_expected={"count": 9}, lab_ws_delay=delay).websockets
    assert sockets.model_dump() == {
        **{"connections": 40, "messages": 0, "expected": 9, "lost": 1, "doubled": 0, "closed": 0},
        **{"delay_p50_ms": 2, "delay_p95_ms": 3.2, "delay_max_ms": 9},
    }


def test_duration_without_answers_is_none_not_zero():
    metrics = {"http_reqs": {"count": 0}, "http_req_duration": {"count": 0, "p(95)": 0, "max": 0}}
    result = _result(**metrics)
    assert {getattr(result, f"p{share}_ms") for share in (50, 90, 95, 99)} == {None}
    sockets = _result(lab_ws_lost={"count": 0}, lab_ws_delay={"count": 0, "max": 0}).websockets
    assert {getattr(sockets, f"delay_{stat}_ms") for stat in ("p50", "p95", "max")} == {None}


def test_answers_per_second_are_successes_over_planned_time():
    counts = {"http_reqs": {"count": 110}, "http_req_failed": {"passes": 20}}
    result = _result(**counts, http_req_duration={"count": 100, "p(95)": 7.06})
    # 4 s were planned; the last answer came after 5.
    assert (result.rps, result.answers_per_second, result.p95_ms) == (22, 22.5, 7.1)
    assert (result.requests, result.successes, result.failed) == (110, 90, 20)


def test_refused_requests_are_not_failures():
    counts = {"http_reqs": {"count": 110}, "http_req_failed": {"passes": 20}}
    result = _result(**counts, **{"lab_cache_status{cache_status:REFUSED}": {"count": 18}})
    assert (result.successes, result.failed, result.refused) == (90, 2, 18)
    assert result.failed_ratio == round(2 / 110, 4)
