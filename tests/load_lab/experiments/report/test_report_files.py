"""The files of a report: page, Markdown, pictures, and the document for `--json`."""

import json
import re
import shutil

from load_lab.experiments.report.rows import build
from load_lab.experiments.report.sections import sections
from load_lab.experiments.report.writing import report_document, report_of, write_report
from load_lab.experiments.run_folder import Store
from load_lab.results.page import html, markdown
from tests.support.report_samples import CLAIMS, FOLDER, find_cell, ladder, load, runs

HOSTILE = "</script><script>alert(1)</script>"


def _texts(svg):
    return set(re.findall(r"<(?:text|tspan)[^>]*>([^<]+)<", svg.read_text()))


def test_report_without_measurements_is_written(tmp_path):
    header, _ = load()
    files = write_report(header, [], [], tmp_path)
    assert "Nothing was measured." in files["markdown"].read_text()
    assert files["pictures"] == []


def test_report_of_a_stored_run_names_its_files_from_the_project(tmp_path, monkeypatch):
    monkeypatch.setenv("LAB_PROJECT", str(tmp_path))
    header, cells = load()
    store = Store(tmp_path / "results/t-20260101-000000-abcd")
    store.write_header(header)
    for number, run in enumerate(runs(cells), start=1):
        store.write_cell(store.cell_folder(number, run.name, run.repeat), run)
    files = report_of(store)["files"]
    assert files["html"] == "results/t-20260101-000000-abcd/report.html"
    named = (files["html"], files["markdown"], *files["pictures"])
    assert all((tmp_path / name).is_file() for name in named)


def test_experiment_with_one_axis_has_report(tmp_path):
    header, cells = load()
    axis = {"name": "server", "positions": [{"name": "sync", "title": "sync workers"}]}
    cell = {**find_cell(cells, "naive/none/detail"), "name": "sync", "axes": {"server": "sync"}}
    document = {**header, "axes": [axis], "plan": [{"name": "sync", "repeat": 1}], "published": []}
    files = write_report(document, runs([cell]), [], tmp_path)
    assert "| sync | sync workers | 1.8 |" in files["markdown"].read_text()
    assert {path.name for path in files["pictures"]} >= {"comparison.png", "curves.svg"}


def test_markdown_embeds_existing_pictures(report_files):
    folder, files = report_files
    links = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", files["markdown"].read_text())
    assert {"pictures/comparison.png", "pictures/curves-detail.png"} <= set(links)
    for link in links:
        assert (folder / link).stat().st_size > 5000
        assert (folder / link).with_suffix(".svg").read_text().startswith("<svg")


def test_static_picture_matches_interactive_chart(report_files):
    texts = _texts(report_files[0] / "pictures/comparison.svg")
    assert {"≥ 1,443 · generator", "≥ 323 · VU cap", "failed", "not measured", "60.7"} <= texts
    curves = (report_files[0] / "pictures/curves-detail.svg").read_text()
    assert curves.count("mark-line role-mark") >= 6
    assert "layer: redis-page; rate, per s:" in curves


def test_published_picture_shows_long_names_whole_and_tells_its_axes(tmp_path):
    header, cells = load()
    name = "random-row-lock/five/asgiref-3-2/gunicorn-5"
    header["published"][0] |= {"cell": "naive/none/detail", "label": name}
    write_report(header, runs(cells), [], tmp_path)
    texts = _texts(tmp_path / "pictures/published.svg")
    assert name in texts
    assert {"requests/s (logarithmic)", "times as many requests/s (logarithmic)"} <= texts


def test_linear_published_picture_does_not_claim_logarithmic_axes(tmp_path):
    header, cells = load()
    header["published"] = [
        {**line, "rps": 5.0, "cell": "naive/none/detail"} for line in header["published"]
    ]
    write_report(header, runs(cells), [], tmp_path)
    assert "logarithmic" not in (tmp_path / "pictures/published.svg").read_text().lower()


def test_names_with_slashes_stay_inside_folder(tmp_path):
    header, cells = load()
    header["axes"][2]["positions"][0]["name"] = "../../detail"
    for cell in cells:
        cell["axes"]["load"] = "../../detail"
    files = write_report(header, runs(cells), [], tmp_path / "run")
    assert (tmp_path / "run/pictures/curves--detail.png") in files["pictures"]


def test_new_report_removes_old_pictures(report_files, tmp_path):
    folder = shutil.copytree(report_files[0], tmp_path / "run")
    assert list((folder / "pictures").iterdir())
    files = write_report(load()[0], [], [], folder)
    assert files["pictures"] == list((folder / "pictures").iterdir()) == []


def test_page_is_self_contained_without_local_paths(report_files):
    page = report_files[1]["html"].read_text()
    assert not re.search(r"""(?:src|href)=["'](?:https?:)?//""", page)
    for text in (page, report_files[1]["markdown"].read_text()):
        assert str(FOLDER.parents[2]) not in text
        assert str(report_files[0]) not in text


def test_page_with_sixty_long_cells_is_below_five_megabytes():
    header, cells = ladder(60, windows=600)
    report = build(header, runs(cells), [])
    all_sections = sections(report)
    links = {block.name: "" for s in all_sections for block in s.blocks if block.kind == "picture"}
    assert len(html("A title", "a-run", all_sections, links).encode()) < 5_000_000


def test_titles_and_errors_are_escaped():
    header, cells = load()
    failed = find_cell(cells, "fast/nginx-protected-warm/detail")
    failed["error"] = f"{HOSTILE} | a ![pic](x) `b`"
    find_cell(cells, "naive/none/detail")["axes"]["layer"] = HOSTILE
    header["title"] = HOSTILE
    report = build(header, runs(cells), CLAIMS)
    all_sections = sections(report)
    links = {block.name: "" for s in all_sections for block in s.blocks if block.kind == "picture"}
    page = html(HOSTILE, HOSTILE, all_sections, links)
    assert HOSTILE not in page
    assert "<title>&lt;/script&gt;" in page
    assert page.count("<script>") == 2
    text = markdown(HOSTILE, all_sections, links)
    assert "&lt;script&gt;alert(1)&lt;/script&gt; \\| a !\\[pic\\](x) \\`b\\`" in text
    assert "<script" not in text


def test_document_has_every_planned_measurement(report_files):
    header, cells = load()
    document = report_document(header, runs(cells), CLAIMS, report_files[1])
    assert json.loads(json.dumps(document)) == document
    assert set(document) >= {"experiment", "cells", "claims", "files"}
    names = "name settings repeat rps goodput requests failed_ratio p95_ms dropped_iterations"
    for cell in document["cells"]:
        assert set(cell) >= {*names.split(), "limited_by", "state"}
    states = [cell["state"] for cell in document["cells"]]
    assert [states.count(s) for s in ("measured", "failed", "missing")] == [7, 1, 1]
    assert set(document["claims"][0]) >= {"id", "text", "verdict", "measured", "published"}
