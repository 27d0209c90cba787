"""A minute under load, or three: nothing grows that should not (an hour: docs)."""

import json

import pytest

from lab.paths import ROOT


@pytest.fixture(scope="module", params=["60s", pytest.param("3m", marks=pytest.mark.slow)])
def soaked(request, lab, stack, results):
    said = lab("set", "--preset", "best")
    assert said.code == 0, said.err
    said = lab("soak", "--duration", request.param, "--rate", "300", "--json")
    assert said.code == 0, said.err + said.out
    return json.loads((ROOT / said.json["files"]["result"]).read_text())


def test_every_bound_is_kept(soaked):
    assert [figure for figure in soaked["figures"] if not figure["kept"]] == []


def test_it_was_looked_at_all_the_time(soaked):
    assert len(soaked["looks"]) > 40
    assert soaked["looks"][-1]["at"] > 0.9 * soaked["seconds"]


def test_there_was_something_to_grow_from(soaked):
    """Pages in Nginx's cache, bookings in the tables, workers with connections."""
    assert soaked["bookings"] > 100
    last = soaked["looks"][-1]
    assert last["folders"]["cache"] > 0
    assert last["connections"] > 0
    assert len(last["workers"]) == 2
