"""What several generators counted, as one summary."""

import json

from load_lab.load.generators import merge_summaries
from load_lab.load.summary import parse_summary


def _summary(count, started, durations):
    load = {"type": "counter", "values": {"count": count, "rate": count / 10}}
    trend = {"count": count, "avg": durations, "min": 1.0, "max": durations * 2, "p(95)": 9.0}
    return {
        "lab": {
            "scenario": "list",
            "started_at_seconds": started,
            "load_seconds": 10.0,
            "duration_seconds": 10,
            "generator": 1,
        },
        "state": {"testRunDurationMs": 12000},
        "metrics": {
            "http_reqs": {"type": "counter", "values": {"count": count + 2, "rate": 1}},
            "http_reqs{scenario:list}": load,
            "http_req_failed{scenario:list}": {
                "type": "rate",
                "values": {"rate": 0.5, "passes": 1, "fails": count - 1},
            },
            "http_req_duration{scenario:list}": {"type": "trend", "values": trend},
            "vus_max": {"type": "gauge", "values": {"value": 4, "min": 4, "max": 4}},
        },
    }


def _merged(tmp_path, **parts):
    (tmp_path / "prepared.json").write_text('{"setupRequests": 3}')
    files = {name: tmp_path / f"{name}.json" for name in parts}
    for name, part in parts.items():
        if part is not None:
            files[name].write_text(json.dumps(part))
    document = merge_summaries(files, tmp_path / "prepared.json")
    return document and parse_summary(document)


def test_counts_are_sums(tmp_path):
    merged = _merged(tmp_path, a=_summary(10, 100.0, 20.0), b=_summary(30, 100.2, 40.0))
    assert merged.value("http_reqs", "count") == 40
    assert merged.value("http_req_failed", "passes") == 2
    assert merged.value("http_req_duration", "avg") == 35
    assert merged.value("http_req_duration", "max") == 80
    assert merged.value("vus_max", "max") == 8
    # Those of setup(), in each generator and before all of them.
    assert merged.all_requests == 12 + 32 + 3


def test_load_lasts_from_the_first_start_to_the_last_response(tmp_path):
    merged = _merged(tmp_path, a=_summary(10, 100.0, 20.0), b=_summary(30, 100.2, 40.0))
    assert (merged.started, round(merged.seconds, 3)) == (100.0, 10.2)
    assert [part.started for part in merged.generators] == [100.0, 100.2]


def test_percentiles_are_not_merged(tmp_path):
    merged = _merged(tmp_path, a=_summary(10, 100.0, 20.0), b=_summary(30, 100.2, 40.0))
    assert merged.milliseconds("http_req_duration", "p(95)") is None


def test_generator_without_a_summary_has_no_count(tmp_path):
    merged = _merged(tmp_path, a=_summary(10, 100.0, 20.0), b=None)
    assert merged.value("http_reqs", "count") == 10
    assert [part.requests for part in merged.generators] == [10, None]


def test_no_summary_at_all(tmp_path):
    assert _merged(tmp_path, a=None, b=None) is None
