"""A load that writes: k6 creates objects, and each request has one, against an API that stores."""

import json
import os
import subprocess
from collections import Counter

import httpx
import pytest

from load_lab.load.load import Load
from load_lab.paths import ROOT
from load_lab.stack.native.program_paths import require
from load_lab.targets.mix import Mix, write_mix
from load_lab.targets.sources.described import divided
from load_lab.targets.sources.explorer import explore, templates_of
from load_lab.targets.sources.known_values import KnownValues
from load_lab.targets.sources.openapi import read_document
from load_lab.targets.sources.writes import explore_writes
from tests.support.writable_api import DOCUMENT, WritableApi, serve_writable_api

OPERATIONS = read_document(json.dumps(DOCUMENT), "document").operations
WRITES = {"POST", "PUT", "PATCH", "DELETE"}


def _mix(api):
    """Return the mix of the API with what it reads and what it writes."""
    with httpx.Client(base_url=api.url) as client:
        known = KnownValues(templates_of(OPERATIONS), client.base_url)
        reads = explore(OPERATIONS, client, known=known)
        writes = explore_writes(OPERATIONS, client, known, reads)
    found, _ = divided(reads | writes.outcomes)
    return Mix(source="test", operations=found)


def _run(folder, api, load, **environ):
    path, summary = folder / "mix.json", folder / "summary.json"
    write_mix(_mix(api), path)
    api.arrived.clear()
    clean = {name: value for name, value in os.environ.items() if not name.startswith("K6_")}
    variables = {"BASE_URL": api.url, "SUMMARY_PATH": str(summary), "MIX": str(path)}
    process = subprocess.run(
        [str(require("k6")), "run", "main.js"],
        cwd=ROOT / "k6",
        env=clean | load.env() | variables | environ,
        capture_output=True,
        text=True,
        check=False,
    )
    document = json.loads(summary.read_text()) if summary.exists() else {}
    return process.returncode, process.stdout + process.stderr, document


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    """Send 1,000 requests to an API whose writes take so long that many are in flight."""
    folder = tmp_path_factory.mktemp("writes")
    with serve_writable_api(WritableApi(seconds=0.1)) as api:
        code, output, document = _run(folder, api, Load("hold", "replay", rate=100, duration="10s"))
        assert code == 0, output
        yield api, output, document


def test_every_request_is_answered_as_expected(load):
    api, output, document = load
    metrics = document["metrics"]
    assert 995 <= metrics["http_reqs{scenario:replay}"]["values"]["count"] <= 1001
    assert metrics["http_req_failed{scenario:replay}"]["values"]["rate"] == 0
    assert [each for each in api.arrived if each.status >= 400] == []
    assert {each.method for each in api.arrived} == {"GET", *WRITES}
    assert "100 of " in output
    assert "objects are created" in output


def test_no_object_has_two_requests_at_a_time_and_each_delete_has_its_own(load):
    api, _, _ = load
    assert api.overlaps == []
    deleted = Counter(each.path for each in api.arrived if each.method == "DELETE")
    assert len(deleted) > 100
    assert set(deleted.values()) == {1}
    changed = {each.path for each in api.arrived if each.method in ("PATCH", "PUT")}
    assert not changed & deleted.keys()


def test_bodies_are_unique_where_the_api_requires_it(load):
    api, _, _ = load
    bodies = Counter(
        each.body for each in api.arrived if each.path in ("/api/hotels/", "/api/tags/")
    )
    assert len(bodies) > 300
    assert [body for body, count in bodies.items() if body and count > 1] == []


def test_only_keeps_what_creates_the_objects(tmp_path):
    with serve_writable_api(WritableApi()) as api:
        short = Load("hold", "replay", rate=10, duration="1s")
        code, output, _ = _run(tmp_path, api, short, ONLY="DELETE *")
        assert code == 0, output
    # Setup creates the objects and deletes one of each kind.
    assert {each.method for each in api.arrived} == {"POST", "DELETE"}
    assert {each.status for each in api.arrived} == {201, 204}
    assert api.arrived[-1].method == "DELETE"


def test_load_that_needs_too_many_objects_is_refused_before_the_first_request(tmp_path):
    with serve_writable_api(WritableApi()) as api:
        long = Load("hold", "replay", rate=500, duration="300s")
        code, output, _ = _run(tmp_path, api, long)
    assert code not in (0, 99)
    assert "at most 5000 are created before a load. Lower the rate (RATE, --rate)" in output
    assert output.count("level=error") == 1
    assert api.arrived == []
