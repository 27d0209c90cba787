"""Figures that only some scenarios and profiles have, from summaries as k6 writes them."""

from lab.collect import Collected
from lab.figures import unfinished, websockets
from lab.recorded import Recorded


def _collected(**metrics):
    named = {name: {"values": values} for name, values in metrics.items()}
    summary = {"lab": {"scenario": "workbench", "load_seconds": 5}, "metrics": named}
    return Collected(summary, None, 0, [], Recorded(7, 7, 5, 0))


def test_what_was_begun_and_did_not_end_is_unfinished():
    counted = {"lab_begun": {"count": 100}, "http_reqs": {"count": 95}}
    assert unfinished(_collected(**counted)) == 5
    # Each that is sent again is the same request of its user.
    assert unfinished(_collected(**counted, lab_retries={"count": 3})) == 8
    assert unfinished(_collected(http_reqs={"count": 95})) is None


def test_sockets_are_counted_where_there_were_some():
    assert websockets(_collected()) is None
    delay = {"p(50)": 2, "p(95)": 3.25, "max": 9}
    held = {"lab_ws_connections": {"max": 40, "value": 0}, "lab_ws_lost": {"count": 1}}
    found = websockets(_collected(**held, lab_ws_expected={"count": 9}, lab_ws_delay=delay))
    assert found == {
        **{"connections": 40, "messages": 0, "expected": 9, "lost": 1, "doubled": 0, "closed": 0},
        **{"delay_p50_ms": 2, "delay_p95_ms": 3.2, "delay_max_ms": 9},
    }
