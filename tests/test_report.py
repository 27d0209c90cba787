"""The report of stored results, by exact text where readers take figures from."""

import json
import re

import pytest
from samples import make
from support.report_samples import CLAIMS, FOLDER, ladder, load, of

from lab.report import report_document, write_report
from lab.report.comparison import comparison
from lab.report.curves import curves, thinned
from lab.report.model import build
from lab.report.page import html, markdown
from lab.report.sections import sections

WARM = "naive/nginx-protected-warm/detail"
HOSTILE = "</script><script>alert(1)</script>"


def _markdown(header, cells, claims=CLAIMS):
    report = build(header, cells, claims)
    links = {"comparison": "pictures/comparison.png", "published": "pictures/published.png"}
    panels = {
        f"{kind}-{p}": f"pictures/{kind}-{p}.png"
        for kind in ("curves", "cpu", "cache")
        for p in report.panels.positions
    }
    return markdown(report, sections(report), {**links, **panels})


@pytest.fixture(scope="module")
def sample():
    return _markdown(*load())


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return folder, write_report(*load(), CLAIMS, folder)


def test_the_answer_says_what_each_layer_bought(sample):
    assert (
        "For detail, naive: none gave 1.8 answers in time per second, redis-page 60.7 (34 ×), "
        "nginx-basic-cold at least 323 (179 ×, limited by the number of virtual users) and "
        "nginx-protected-warm at least 1,443 (802 ×, limited by the generator). "
        "From none to the best layer: detail, fast 75.6 → 80.9 (1.1 ×) by redis-page." in sample
    )
    assert "Of 3 claims, 1 holds, 1 does not hold and 1 was not measured." in sample
    assert "Of 8 planned cells, 1 failed and 1 is missing." in sample


def test_the_stored_sample_is_what_make_py_makes():
    header, cells = load()
    assert make.small() == (header, cells)


def test_every_claim_has_its_verdict_beside_both_figures(sample):
    assert (
        "| Redis makes it four times as fast | **holds** | 16 → 81 requests/s "
        "| none 1.8, redis 60.8 | redis &gt;= 4 \\* none | – |" in sample
    )
    assert "| A warm Nginx answers every request | **does not hold** | 96 % failed |" in sample
    assert "| The journey gains from Redis | *not measured* | – | none – |" in sample


def test_a_cell_that_the_target_did_not_limit_is_marked_in_the_table(sample):
    assert "| nginx-protected-warm | Nginx protected, warm | *≥ 1,443, limited by the gen" in sample
    assert "*≥ 323, limited by the number of virtual users*" in sample


def test_a_cell_that_the_target_did_not_limit_is_marked_in_the_picture():
    header, cells = load()
    panel = comparison(build(header, cells, [])).panels[0]
    rows = {row["cell"]: row for row in _data(panel)}
    assert (rows[WARM]["open"], rows[WARM]["text"]) == (True, "≥ 1,443 · generator")
    assert rows["naive/nginx-basic-cold/detail"]["text"] == "≥ 323 · VU cap"
    assert (rows["naive/none/detail"]["open"], rows["naive/none/detail"]["text"]) == (False, "1.8")
    assert rows["fast/nginx-protected-warm/detail"]["text"] == "failed"


def test_a_ramp_that_held_to_its_end_is_a_lower_bound_too():
    header, cells = load()
    of(cells, "naive/none/detail").update(outcome="held", limited_by="none", break_point=None)
    assert "| none | no cache | *≥ 1.8, held to the end of the load* |" in _markdown(header, cells)


def test_repeats_show_their_median_and_range(sample):
    assert "| 60.7 (57.8–63.6) |" in sample
    assert "| naive/redis-page/detail | measured | 2 of 2 | 60.7 (57.8–63.6) |" in sample


def test_failed_missing_and_excluded_cells_are_all_named(sample):
    assert "| fast/nginx-protected-warm/detail | 1 | The cache layer nginx is not on: no" in sample
    assert "| naive/none/article | *not measured* | 0 of 1 | – |" in sample
    assert "| fast/local/booking | A booking is never cached. |" in sample


def test_published_figures_stand_beside_the_measured_ones():
    header, cells = load()
    header["published"][1]["cell"] = "naive/redis-page/detail"
    header["published"][0]["cell"] = "naive/none/detail"
    text = _markdown(header, cells)
    assert re.search(r"\| Redis \| 81\.0 \| [\d.]+ \| 5\.1 × \| [\d.]+ × \| 11,000 \|", text)
    assert "compare the steps from one layer to the next" in text


def test_the_conditions_are_complete(sample):
    for text in (
        "| machine | AMD EPYC, 2 CPUs, 7.8 GiB of memory |",
        "| CPUs | pinned: target on 0, load on 1 |",
        "| bounds | p95 1,000 ms, errors 1 %, 95 % of the requests that are due answered |",
        "| commit | 52f3e3d |",
        "- steal time 3 % while idle",
        "| LAB\\_WORKERS | 2 |",
    ):
        assert text in sample


def test_a_finished_full_run_needs_no_notice(sample):
    assert not re.search(r"QUICK|INTERRUPTED|SHARED", sample)


@pytest.mark.parametrize(
    ("change", "notice"),
    [
        ({"quick": True}, "> **QUICK RUN: the durations were scaled down."),
        ({"state": "interrupted"}, "> **INTERRUPTED: 7 of 9 planned measurements are in this"),
        ({"state": "running", "ended": None}, "> **STILL RUNNING: 7 of 9 planned measurements"),
        ({"host": {"shared_cpus": True}}, "> **SHARED CPUs: the target and the load generator"),
    ],
)
def test_what_weakens_the_figures_is_said_at_the_top(change, notice):
    header, cells = load()
    text = _markdown({**header, **change}, cells)
    assert notice in text.split("## Claims")[0]


def test_nothing_measured_is_a_report_too(tmp_path):
    header, _ = load()
    files = write_report(header, [], [], tmp_path)
    assert "Nothing was measured." in files["markdown"].read_text()
    assert files["pictures"] == []


def test_an_experiment_with_one_axis_needs_no_layers_or_loads(tmp_path):
    header, cells = load()
    axis = {"name": "server", "positions": [{"name": "sync", "title": "sync workers"}]}
    cell = {**of(cells, "naive/none/detail"), "name": "sync", "axes": {"server": "sync"}}
    one = {**header, "axes": [axis], "plan": [{"name": "sync", "repeat": 1}], "published": []}
    files = write_report(one, [cell], [], tmp_path)
    assert "| sync | sync workers | 1.8 |" in files["markdown"].read_text()
    assert {path.name for path in files["pictures"]} >= {"comparison.png", "curves.svg"}


def test_titles_and_errors_can_not_become_markup():
    header, cells = load()
    failed = of(cells, "fast/nginx-protected-warm/detail")
    failed["error"] = f"{HOSTILE} | a ![pic](x) `b`"
    of(cells, "naive/none/detail")["axes"]["layer"] = HOSTILE
    header["title"] = HOSTILE
    report = build(header, cells, CLAIMS)
    found = sections(report)
    links = {block.name: "" for s in found for block in s.blocks if block.kind == "picture"}
    page = html(report, found, links)
    assert HOSTILE not in page
    assert "<title>&lt;/script&gt;" in page
    assert page.count("<script>") == 2
    text = markdown(report, found, links)
    assert "&lt;script&gt;alert(1)&lt;/script&gt; \\| a !\\[pic\\](x) \\`b\\`" in text
    assert "<script" not in text


def test_the_markdown_embeds_pictures_that_exist(written):
    folder, files = written
    links = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", files["markdown"].read_text())
    assert {"pictures/comparison.png", "pictures/curves-detail.png"} <= set(links)
    for link in links:
        assert (folder / link).stat().st_size > 5000
        assert (folder / link).with_suffix(".svg").read_text().startswith("<svg")


def test_the_static_twin_shows_what_the_interactive_picture_does(written):
    svg = (written[0] / "pictures/comparison.svg").read_text()
    texts = set(re.findall(r"<(?:text|tspan)[^>]*>([^<]+)<", svg))
    assert {"≥ 1,443 · generator", "≥ 323 · VU cap", "failed", "not measured", "60.7"} <= texts
    curves = (written[0] / "pictures/curves-detail.svg").read_text()
    assert curves.count("mark-line role-mark") >= 6
    assert "layer: redis-page; rate, per s:" in curves


def test_names_with_slashes_stay_inside_the_folder(tmp_path):
    header, cells = load()
    header["axes"][2]["positions"][0]["name"] = "../../detail"
    for cell in cells:
        cell["axes"]["load"] = "../../detail"
    files = write_report(header, cells, [], tmp_path / "run")
    assert (tmp_path / "run/pictures/curves--detail.png") in files["pictures"]


def test_a_new_report_leaves_no_picture_of_the_old_one(written, tmp_path):
    header, cells = load()
    write_report(header, cells, CLAIMS, tmp_path)
    files = write_report(header, [], [], tmp_path)
    assert files["pictures"] == list((tmp_path / "pictures").iterdir()) == []


def test_the_page_needs_no_network_and_names_no_path_of_the_machine(written):
    page = written[1]["html"].read_text()
    assert not re.search(r"""(?:src|href)=["'](?:https?:)?//""", page)
    for text in (page, written[1]["markdown"].read_text()):
        assert str(FOLDER.parents[2]) not in text
        assert str(written[0]) not in text


def test_sixty_long_cells_make_a_page_below_five_megabytes():
    header, cells = ladder(60, windows=600)
    report = build(header, cells, [])
    found = sections(report)
    links = {block.name: "" for s in found for block in s.blocks if block.kind == "picture"}
    assert len(html(report, found, links).encode()) < 5_000_000


def test_thinned_windows_keep_the_ends_and_the_break():
    windows = [{"end": float(end)} for end in range(5, 605)]
    kept = [window["end"] for window in thinned(windows, 338.0)]
    assert (kept[0], kept[-1]) == (5.0, 604.0)
    assert 338.0 in kept
    assert len(kept) <= 63


def test_a_load_of_one_rate_is_drawn_over_time():
    header, cells = load()
    for cell in cells:
        for window in cell.get("windows", []):
            window["offered"] = 20.0
    picture = curves(build(header, cells, []), "detail")
    assert picture.caption.startswith("Over the seconds since the load began")


def test_the_document_has_every_planned_measurement(written):
    header, cells = load()
    document = report_document(header, cells, CLAIMS, written[1])
    assert json.loads(json.dumps(document)) == document
    assert set(document) >= {"experiment", "cells", "claims", "files"}
    names = "name settings repeat rps goodput requests failed_ratio p95_ms dropped_iterations"
    for cell in document["cells"]:
        assert set(cell) >= {*names.split(), "limited_by", "state"}
    states = [cell["state"] for cell in document["cells"]]
    assert [states.count(s) for s in ("measured", "failed", "missing")] == [7, 1, 1]
    assert set(document["claims"][0]) >= {"id", "text", "verdict", "measured", "published"}


def _data(panel):
    """The rows of a panel, wherever Altair put them."""
    inline = panel["data"].get("values")
    return inline if inline is not None else panel["datasets"][panel["data"]["name"]]
