"""`lab profile`: py-spy on the real workers under a real load."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from load_lab.errors import LabError
from load_lab.paths import ROOT
from load_lab.profile.flamegraph import hottest, packages
from load_lab.profile.recorder import Recorder, without_root

LAB = Path(sys.executable).parent / "lab"

# Template of a flame graph. Example with 10 samples: 4 in a itself, 6 in b, which a calls.
GRAPH = """<svg xmlns="http://www.w3.org/2000/svg" xmlns:fg="http://github.com/jonhoo/inferno">
{}</svg>"""
FRAME = '<g><title>{} ({} samples, 1.0%)</title><rect y="{}" fg:x="{}" fg:w="{}"/></g>'


@pytest.fixture(scope="module")
def profile_result(lab, stack):
    result = lab("profile", "--scenario", "detail", "--duration", "5s", "--json")
    assert result.code == 0, result.err
    yield result
    shutil.rmtree((ROOT / result.json["files"]["svg"]).parent)


def test_profile_lists_ten_hottest_functions_with_shares(profile_result):
    document = profile_result.json
    assert len(document["hottest"]) == 10
    shares = [hot["self_percent"] for hot in document["hottest"]]
    assert shares == sorted(shares, reverse=True)
    assert all(hot["cumulative_percent"] >= hot["self_percent"] for hot in document["hottest"])
    assert sum(shares) <= 100.5
    # The naive detail view spends its time in Django and REST framework.
    where = " ".join(hot["where"] for hot in document["hottest"])
    assert "django/" in where or "rest_framework/" in where


def test_cost_per_request_is_cpu_time_of_workers(profile_result):
    document = profile_result.json
    assert document["requests"] > 10
    assert document["failed"] == 0
    assert 5 <= document["seconds"] <= 8
    # Each worker uses at most one CPU and is busy most of the time.
    workers = document["settings"]["LAB_WORKERS"]
    assert 0.5 <= document["cpu_seconds"] <= document["seconds"] * workers
    cost = document["cpu_seconds"] / document["requests"] * 1000
    assert document["cpu_ms_per_request"] == pytest.approx(cost, rel=0.02)


def test_flame_graph_and_document_have_same_samples(profile_result):
    document = profile_result.json
    svg = ROOT / document["files"]["svg"]
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")
    assert f"({document['samples'] + document['idle_samples']:,} samples" in svg.read_text()
    file_document = json.loads((ROOT / document["files"]["profile"]).read_text())
    assert file_document == document
    assert file_document["load"]["PROFILE"] == "closed"


def test_flame_graph_does_not_contain_project_path(profile_result):
    svg = (ROOT / profile_result.json["files"]["svg"]).read_text()
    assert str(ROOT) not in svg
    assert ">.venv/bin/py-spy record" in svg


@pytest.mark.parametrize(
    ("text", "relative_text"),
    [
        ("--output /home/me/a&amp;b/results/x.svg", "--output results/x.svg"),
        ("process 7:&quot;/home/me/a&amp;b/.venv/bin/python", "process 7:&quot;.venv/bin/python"),
        ("--chdir /home/me/a&amp;b &quot;", "--chdir . &quot;"),
        ("<text>process 7:&quot;/home/m..</text>", "<text>process 7:&quot;..</text>"),
        ("<text>/home/me/a&amp;b/.v..</text>", "<text>.v..</text>"),
        ("--name /home/me/a&amp;b2/x", "--name /home/me/a&amp;b2/x"),
        ("--name /srv/home/me/a&amp;b/x", "--name /srv/home/me/a&amp;b/x"),
        ("<title>view (app/views.py:3)</title>", "<title>view (app/views.py:3)</title>"),
    ],
)
def test_paths_are_relative_to_project(text, relative_text):
    assert without_root(text, Path("/home/me/a&b")) == relative_text


def test_profile_reports_recording(profile_result):
    assert "Recording 5 s of detail under load" in profile_result.err


def test_function_counts_once_per_sample(tmp_path):
    frames = [("all", 0, 0, 10), ("a (x.py:1)", 1, 0, 10), ("b (y.py:2)", 2, 2, 6)]
    frames += [("b (y.py:2)", 3, 2, 5), ("c", 4, 2, 1)]
    elements = (FRAME.format(name, width, y, first, width) for name, y, first, width in frames)
    svg = tmp_path / "graph.svg"
    svg.write_text(GRAPH.format("\n".join(elements)))
    samples, idle, functions = hottest(svg)
    assert (samples, idle) == (10, 0)
    counts = {hot.function: (hot.where, hot.self_samples, hot.all_samples) for hot in functions}
    assert counts == {"b": ("y.py:2", 5, 6), "a": ("x.py:1", 4, 10), "c": ("", 1, 1)}


def test_generator_without_its_caller_counts_for_those_that_call_it(tmp_path):
    """A generator that yielded while py-spy read the stack is the outermost function there."""
    frames = [("all", 0, 0, 100), ("process 7:&quot;gunicorn&quot;", 1, 0, 100)]
    # Whole stacks: main calls page and list, of which both use rows: 30 and 10 samples.
    frames += [
        ("main (m.py:1)", 2, 0, 60),
        ("page (v.py:1)", 3, 0, 40),
        ("rows (d.py:1)", 4, 0, 30),
    ]
    frames += [("list (v.py:9)", 3, 40, 20), ("rows (d.py:1)", 4, 40, 10)]
    frames += [
        ("rows (d.py:1)", 2, 60, 32),
        ("send (d.py:5)", 3, 60, 12),
        ("idle (i.py:1)", 2, 92, 8),
    ]
    elements = (FRAME.format(name, width, y, first, width) for name, y, first, width in frames)
    svg = tmp_path / "graph.svg"
    svg.write_text(GRAPH.format("\n".join(elements)))
    counts = {hot.function: hot.all_samples for hot in hottest(svg)[2]}
    assert counts["page"] == 40 + 24
    assert counts["list"] == 20 + 8
    assert counts["main"] == 60 + 32
    assert (counts["rows"], counts["send"], counts["idle"]) == (72, 12, 8)


def test_workers_without_a_request_have_no_samples(tmp_path):
    wait, frames = "SyncWorker.wait (gunicorn/workers/sync.py:32)", [("all", 0, 0, 100)]
    for number, (first, waiting) in enumerate([(0, 10), (50, 30)]):
        frames += [
            (f"process {number}:&quot;gunicorn&quot;", 1, first, 50),
            ("run (gunicorn/workers/sync.py:60)", 2, first, 50),
            (wait, 3, first, waiting),
            ("view (v.py:1)", 3, first + waiting, 50 - waiting - 2),
        ]
    elements = (FRAME.format(name, width, y, first, width) for name, y, first, width in frames)
    svg = tmp_path / "graph.svg"
    svg.write_text(GRAPH.format("\n".join(elements)))
    samples, idle, functions = hottest(svg)
    assert (samples, idle) == (60, 40)
    counts = {hot.function: (hot.self_samples, hot.all_samples) for hot in functions}
    assert counts["run"] == (4, 60)
    assert counts["view"] == (56, 56)
    assert "SyncWorker.wait" not in counts
    assert 'process 1:"gunicorn"' in counts


def test_samples_of_package_are_those_of_its_functions(tmp_path):
    frames = [("all", 0, 0, 10), ("run (gunicorn/workers/sync.py:1)", 1, 0, 10)]
    frames += [
        ("send (django/dispatch.py:2)", 2, 2, 8),
        ("loads (json/decoder.py:3)", 3, 2, 2),
        ("run (&lt;frozen runpy&gt;:9)", 3, 4, 1),
    ]
    frames += [("hex (uuid.py:4)", 3, 5, 2), ("wait (django/db/utils.py:5)", 3, 7, 1)]
    elements = (FRAME.format(name, width, y, first, width) for name, y, first, width in frames)
    svg = tmp_path / "graph.svg"
    svg.write_text(GRAPH.format("\n".join(elements)))
    assert packages(hottest(svg)[2]) == {"gunicorn": 2, "django": 3, "stdlib": 5}


def test_invalid_flame_graph_is_one_message(tmp_path):
    svg = tmp_path / "graph.svg"
    svg.write_text(GRAPH.format("<g><title>half"))
    with pytest.raises(LabError, match=r"can't be read: .* Record again"):
        hottest(svg)


def test_invalid_function_name_does_not_damage_flame_graph(tmp_path):
    """py-spy can read invalid bytes from a worker whose state is changing."""
    svg = tmp_path / "graph.svg"
    graph = GRAPH.format(FRAME.format("a\x01\x0c (x.py:1)", 10, 0, 0, 10)).encode()
    svg.write_bytes(graph.replace(b"x.py", b"\xff.py"))
    recorder = Recorder(0, svg, "0")
    with subprocess.Popen(["true"], stderr=subprocess.PIPE, text=True) as process:
        recorder._end(process, failed=False)
    assert hottest(svg)[0] == 10


def test_unknown_scenario_is_usage_error(lab, stack):
    result = lab("profile", "--scenario", "checkout")
    assert result.is_one_message(2)
    assert "'checkout' is not one of 'journey', 'list', 'detail', 'booking'" in result.err


def test_profile_without_stack_names_lab_up(lab, tmp_path):
    result = lab("profile", LAB_STATE_DIR=str(tmp_path))
    assert result.is_one_message(1)
    assert "lab up" in result.err


# At 1 request/s, Nginx answers every request from its cache.
@pytest.mark.settings("LAB_NGINX_CACHE=basic")
def test_profile_of_idle_backend_is_rejected(lab, stack):
    assert lab("k6", "smoke", "--scenario", "list", "--vus", "1", "--duration", "1s").code == 0
    result = lab("profile", "--scenario", "list", "--rate", "1", "--duration", "2s")
    assert result.is_one_message(1)
    assert "next to nothing to do" in result.err
    assert "Nginx cache basic" in result.err


@pytest.mark.skipif(
    os.getuid() != 0 or not shutil.which("setpriv"), reason="only root can give up what root may"
)
def test_missing_permission_is_reported_with_remedy(stack):
    argv = ["setpriv", "--bounding-set", "-sys_ptrace", str(LAB), "profile"]
    process = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert process.returncode == 1
    assert "Traceback" not in process.stderr
    assert "py-spy can't look into" in process.stderr
    assert re.search("as root.*ptrace_scope", process.stderr, re.DOTALL)
