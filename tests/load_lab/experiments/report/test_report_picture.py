"""The picture of a single run: its labels, limits and break point."""

import re

import pytest

from load_lab.metrics.windows import Bounds, Window
from load_lab.results.breakpoint import find_break
from load_lab.results.result import Result
from load_lab.run.chart import draw
from tests.support.samples.cells import BREAKS, ramp

TITLE = "breakpoint of detail; gunicorn-sync × 2, detail <naive>"


def _texts(result, path) -> list[str]:
    png = draw(result, Bounds(), TITLE, path)
    assert png == path.with_suffix(".png")
    assert png.read_bytes().startswith(b"\x89PNG")
    return re.findall(r"<(?:text|tspan)[^>]*>([^<]+)<", path.with_suffix(".svg").read_text())


@pytest.fixture
def windows():
    documents = ramp(BREAKS[0], 300, 0)
    return [Window(**{**window, "broken": tuple(window["broken"])}) for window in documents]


def test_picture_of_broken_run_shows_break_and_limits(windows, tmp_path):
    verdict = "broke at 2.0 requests/s; limited by the target"
    result = Result(windows=windows, verdict=verdict, break_point=find_break(windows))
    texts = _texts(result, tmp_path / "breakpoint")
    assert "broke at 2.0/s" in texts
    assert {"p95", "offered", "achieved", "goodput", "errors", "limit"} <= set(texts)
    assert {"response time (ms)", "per second", "errors (%)"} <= set(texts)
    assert "offered arrival rate, per second" in texts
    assert verdict in texts
    assert "gunicorn-sync × 2, detail &lt;naive&gt;" in texts


def test_picture_of_constant_rate_shows_time_without_break(windows, tmp_path):
    constant = [Window(**{**w.__dict__, "offered": 2.0, "p95_ms": None}) for w in windows]
    result = Result(windows=constant, verdict="held: up to 2.0 requests/s no limit was exceeded")
    texts = _texts(result, tmp_path / "hold")
    assert "seconds into the load" in texts
    assert not [text for text in texts if text.startswith("broke")]
