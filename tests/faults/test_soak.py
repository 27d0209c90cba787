"""One or three minutes under load: nothing grows beyond its limit (see docs for an hour)."""

import json

import pytest

from load_lab.paths import ROOT


@pytest.fixture(scope="module", params=[pytest.param("60s", marks=pytest.mark.core), "3m"])
def soak(request, lab, stack, results):
    result = lab("set", "--preset", "best")
    assert result.code == 0, result.err
    result = lab("soak", "--duration", request.param, "--rate", "300", "--json")
    assert result.code == 0, result.err + result.out
    return json.loads((ROOT / result.json["files"]["result"]).read_text())


def test_soak_meets_every_limit(soak):
    assert [check for check in soak["figures"] if not check["kept"]] == []


def test_samples_cover_whole_soak(soak):
    assert len(soak["looks"]) > 40
    assert soak["looks"][-1]["at"] > 0.9 * soak["seconds"]


def test_soak_used_cache_tables_and_connections(soak):
    """Nginx's cache has pages, the tables have bookings, and workers have connections."""
    assert soak["rows"]["bookings"] > 100
    last = soak["looks"][-1]
    assert last["folders"]["cache"] > 0
    assert last["connections"] > 0
    # The main process, and two that answer.
    assert len(last["workers"]) == 3
