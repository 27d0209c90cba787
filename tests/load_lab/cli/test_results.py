"""The commands about stored runs: list, show, report and export."""

import csv
import json
import secrets
import shutil
from pathlib import Path

import pytest

from load_lab.capacity.measurement import search_result
from load_lab.diagnosis import causes
from load_lab.metrics.windows import Bounds, Window
from load_lab.paths import ROOT, project
from load_lab.results.bottleneck import Diagnosis
from load_lab.results.breakpoint import BreakPoint
from load_lab.results.completeness import Completeness
from load_lab.results.result import Result, TargetName
from load_lab.run.chart import draw
from load_lab.run.single_run import SingleRun
from load_lab.settings import load_settings
from tests.support.report_samples import FOLDER

HOST = {
    **{"engine": "native", "cpus": 2, "memory_bytes": 8 * 2**30, "system": "Linux"},
    **{"target_cpus": "0", "load_cpus": "1", "shared_cpus": False, "commit": "abc"},
}


@pytest.fixture(scope="module")
def stored_run():
    """Store a ramp that broke, in the format of `lab k6`."""
    testid = f"breakpoint-20260101-000000-{secrets.token_hex(2)}"
    folder = project().results / testid
    folder.mkdir()
    windows = [Window(end, end, end, end, end, 0.0, 0.0, 20.0 * end) for end in range(5, 41)]
    result = Result(
        testid=testid,
        profile="breakpoint",
        scenario="detail",
        seconds=40,
        requests=800,
        successes=800,
        rps=20.0,
        p95_ms=321.5,
        outcome="broke",
        limited_by="target",
        verdict="broke at 20.0 requests/s",
        break_point=BreakPoint(20.0, 22.0, 19.0, 30, ("p95 1200 ms > 1000 ms",)),
        recorded=Completeness(800, 800, 40, 0),
        windows=windows,
        target=TargetName(name="hotel", url="http://127.0.0.1:8080"),
        bottleneck=Diagnosis(
            cause=causes.SLOTS.name,
            certainty="likely",
            headline=causes.SLOTS.name,
            evidence=("2.0 of 2 workers busy",),
            remedy=causes.SLOTS.remedy,
            split_ms={"network": 404.0, "cpu": 12.0},
        ),
    )
    picture = draw(result, Bounds(), "breakpoint of detail; settings", folder / "breakpoint")
    names = {"folder": folder, "result": folder / "result.json", "picture": picture}
    files = {name: str(path.relative_to(ROOT)) for name, path in names.items()}
    run = SingleRun(result, files, Bounds(), load_settings({}), HOST, None)
    (folder / "result.json").write_text(json.dumps(run.document()))
    yield run
    shutil.rmtree(folder)


def test_list_shows_run_with_its_verdict(lab, stored_run):
    runs = lab("list", "runs", "--json").json["runs"]
    (entry,) = [run for run in runs if run["name"] == stored_run.result.testid]
    assert (entry["kind"], entry["about"]) == ("run", "broke at 20.0 requests/s")


def test_show_prints_output_of_the_run(lab, stored_run):
    result = lab("show", stored_run.result.testid)
    assert result.code == 0, result.err
    assert result.out.startswith("broke at 20.0 requests/s")
    assert "p95 321.5 ms" in result.out
    document = lab("show", stored_run.result.testid, "--json").json
    assert (document["testid"], document["p95_ms"]) == (stored_run.result.testid, 321.5)


def test_run_that_broke_is_explained(lab, stored_run):
    name = Path(stored_run.files["folder"]).name
    result = lab("explain", name)
    assert result.code == 0, result.err
    assert "bottleneck: worker slots" in result.out
    assert "in the network to and from Postgres 404 ms" in result.out
    assert lab("explain", name, "--json").json["bottleneck"]["cause"] == "worker slots"


@pytest.fixture
def unseen_run(stored_run):
    """Store the run as if nothing had been seen of the target, and yield its name."""
    path = ROOT / stored_run.files["result"]
    text = path.read_text()
    path.write_text(json.dumps({**json.loads(text), "bottleneck": None}))
    yield path.parent.name
    path.write_text(text)


def test_result_without_a_cause_says_why(lab, unseen_run):
    result = lab("explain", unseen_run)
    assert result.code == 0
    assert "Nothing was seen of the target then" in result.out
    proof = lab("explain", unseen_run, "--prove")
    assert proof.code == 2
    assert "This run has no cause to verify" in proof.err


@pytest.fixture
def stored_cells(stored_run):
    """Store the sample experiment, whose second repeat of a cell has a cause; yield its name."""
    folder = project().results / f"cache-ladder-20260101-000000-{secrets.token_hex(2)}"
    shutil.copytree(FOLDER, folder)
    path = folder / "cells/003-naive+redis-page+detail.r2/cell.json"
    cause = stored_run.document()["bottleneck"]
    path.write_text(json.dumps({**json.loads(path.read_text()), "bottleneck": cause}))
    yield folder.name
    shutil.rmtree(folder)


def test_cell_of_an_experiment_is_explained(lab, stored_cells):
    result = lab("explain", f"{stored_cells}/naive/redis-page/detail")
    assert result.code == 0, result.err
    assert "bottleneck: worker slots" in result.out
    unnamed = lab("explain", stored_cells)
    assert unnamed.code == 2
    assert f"{stored_cells}/naive/redis-page/detail" in unnamed.err


def test_cell_of_a_target_is_explained(lab, stored_cells):
    """It has no settings, but a variant."""
    name = "003-naive+redis-page+detail.r2"
    path = project().results / stored_cells / "cells" / name / "cell.json"
    shop = {"settings": {}, "variant": {"options": {"workers": 4}}}
    shop["target"] = {"name": "shop", "url": "http://127.0.0.1:9"}
    path.write_text(json.dumps(json.loads(path.read_text()) | shop))
    cell = f"{stored_cells}/naive/redis-page/detail"
    result = lab("explain", cell)
    assert result.code == 0, result.err
    assert "bottleneck: worker slots" in result.out
    proof = lab("explain", cell, "--prove")
    assert proof.is_one_message(2)
    assert "shop.toml, so the lab can't start it again" in proof.err


@pytest.fixture
def stored_capacity(stored_run):
    folder = project().results / "capacity-20260101-000000"
    folder.mkdir()
    limit = {
        **{"load": "hold-20260101-000000-0000", "answered": 240, "failed": 0, "late": 40},
        **{"p50_ms": 200.0, "p95_ms": 900.0, "p99_ms": 950.0, "seconds": 12},
        **{"services": {"backend": 0.6}, "bottleneck": stored_run.document()["bottleneck"]},
    }
    document = {
        **{
            "schema_version": 1,
            "outcome": "unconfirmed",
            "headline": "20/s, not confirmed",
        },
        **{"rate": 20.0, "low": 19.0, "high": 21.0, "seconds": 90.0, "cpu_speed": 1.0},
        **{
            "target": "shop",
            "url": "http://127.0.0.1:9",
            "scenario": "mix",
            "started": "2026-01-01T00:00:00+00:00",
        },
        **{"settings": load_settings({}).model_dump(), "at_capacity": None, "limit": limit},
    }
    (folder / "result.json").write_text(json.dumps(document))
    yield folder.name
    shutil.rmtree(folder)


def test_capacity_without_a_passed_load_has_the_cost_of_the_load_above(stored_capacity):
    path = project().results / stored_capacity / "result.json"
    result = search_result(json.loads(path.read_text()))
    assert (result.requests, result.cpu_ms_per_request) == (240, {"backend": 30.0})


def test_capacity_is_explained(lab, stored_capacity):
    result = lab("explain", stored_capacity)
    assert result.code == 0, result.err
    assert "20/s, not confirmed" in result.out
    assert "bottleneck: worker slots" in result.out
    proof = lab("explain", stored_capacity, "--prove")
    assert proof.code == 2
    assert "shop.toml, so the lab can't start it again" in proof.err


def test_unknown_run_has_no_explanation(lab):
    result = lab("explain", "nothing-20260101-000000-abcd")
    assert result.code == 2
    assert "There is no run nothing-" in result.err


def test_report_is_one_self_contained_page(lab, stored_run):
    result = lab("report", stored_run.result.testid, "--json")
    assert result.code == 0, result.err
    page = (ROOT / result.json["files"]["html"]).read_text()
    assert "broke at 20.0 requests/s" in page
    assert "data:image/svg+xml;base64," in page
    assert "LAB_NGINX_CACHE" in page
    markdown = (ROOT / result.json["files"]["markdown"]).read_text()
    assert "![broke at 20.0 requests/s](breakpoint.png)" in markdown


@pytest.mark.parametrize("form", ["csv", "md", "json"])
def test_export_contains_metrics(lab, stored_run, tmp_path, form):
    file = tmp_path / f"metrics.{form}"
    result = lab("show", stored_run.result.testid, "--export", form, str(file))
    assert result.code == 0, result.err
    text = file.read_text()
    if form == "csv":
        (row,) = csv.DictReader(text.splitlines())
    elif form == "json":
        (row,) = json.loads(text)
    else:
        lines = (line.split("|") for line in text.replace("\\_", "_").splitlines())
        row = {name.strip(): value.strip() for _, name, value, _ in lines}
    assert float(row["p95_ms"]) == 321.5
    assert float(row["broke_at"]) == 20


def test_export_into_missing_folder_is_one_message(lab, stored_run, tmp_path):
    path = str(tmp_path / "missing" / "metrics.csv")
    result = lab("show", stored_run.result.testid, "--export", "csv", path)
    assert result.is_one_message(1)
    assert "can't be written" in result.err


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("{", 1, "is damaged"),
        ("[]", 1, "is damaged"),
        ('{"schema_version": 1}', 1, "is damaged"),
        ('{"schema_version": 1, "requests": "many", "files": {}, "bounds": {}}', 1, "is damaged"),
        ('{"schema_version": 99}', 2, "has schema version 99; this lab reads 1"),
        ('{"schema_version": true}', 2, "has schema version True; this lab reads 1"),
    ],
)
@pytest.mark.parametrize("command", ["show", "report"])
def test_damaged_result_is_one_message(lab, command, text, code, message):
    folder = project().results / f"smoke-20260101-000000-{secrets.token_hex(2)}"
    folder.mkdir()
    try:
        (folder / "result.json").write_text(text)
        result = lab(command, folder.name)
        list_result = lab("list", "runs")
    finally:
        shutil.rmtree(folder)
    assert result.is_one_message(code), result.err
    assert message in result.err
    assert list_result.code == 0, list_result.err
