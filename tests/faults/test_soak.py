"""One or three minutes under load: nothing grows beyond its limit (see docs for an hour)."""

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


def test_soak_meets_every_limit(soaked):
    assert [figure for figure in soaked["figures"] if not figure["kept"]] == []


def test_samples_cover_whole_soak(soaked):
    assert len(soaked["looks"]) > 40
    assert soaked["looks"][-1]["at"] > 0.9 * soaked["seconds"]


def test_soak_used_cache_tables_and_connections(soaked):
    """Nginx's cache has pages, the tables have bookings, and workers have connections."""
    assert soaked["bookings"] > 100
    last = soaked["looks"][-1]
    assert last["folders"]["cache"] > 0
    assert last["connections"] > 0
    assert len(last["workers"]) == 2
