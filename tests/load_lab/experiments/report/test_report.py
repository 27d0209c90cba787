"""The report of stored results: exact text wherever readers take values from."""

import re

import pytest

from load_lab.experiments.report.curves import curves, thin_windows
from load_lab.experiments.report.main_chart import comparison
from load_lab.experiments.report.rows import build
from load_lab.experiments.report.sections import sections
from load_lab.metrics.windows import Window
from load_lab.results.page import markdown
from tests.support.report_samples import CLAIMS, find_cell, load, runs
from tests.support.samples import make

WARM = "naive/nginx-protected-warm/detail"


def _markdown(header, cells, claims=CLAIMS):
    report = build(header, runs(cells), claims)
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


def test_answer_states_goodput_and_factor_of_each_layer(sample):
    assert (
        "For detail, naive: none gave 1.8 answers in time per second, redis-page 60.7 (34 ×), "
        "nginx-basic-cold at least 323 (179 ×, limited by the number of virtual users) and "
        "nginx-protected-warm at least 1,443 (802 ×, limited by the load generator's CPU). "
        "From none to the best layer: detail, fast 75.6 → 80.9 (1.1 ×) by redis-page." in sample
    )
    assert "Of 3 claims, 1 holds, 1 does not hold and 1 was not measured." in sample
    assert "Of 8 planned cells, 1 failed and 1 is missing." in sample


def test_stored_sample_matches_make_py():
    header, cells = load()
    assert make.small() == (header, cells)


def test_claim_row_has_verdict_published_and_measured_values(sample):
    assert (
        "| Redis makes it four times as fast | **holds** | 16 → 81 requests/s "
        "| none 1.8, redis 60.8 | redis &gt;= 4 \\* none | – |" in sample
    )
    assert "| A warm Nginx answers every request | **does not hold** | 96 % failed |" in sample
    assert "| The journey gains from Redis | *not measured* | – | none – |" in sample


def test_table_marks_cells_not_limited_by_target(sample):
    assert "| nginx-protected-warm | Nginx protected, warm | *≥ 1,443, limited by the loa" in sample
    assert "*≥ 323, limited by the number of virtual users*" in sample


def test_chart_marks_cells_not_limited_by_target():
    header, cells = load()
    panel = comparison(build(header, runs(cells), [])).panels[0]
    rows = {row["cell"]: row for row in _data(panel)}
    assert (rows[WARM]["open"], rows[WARM]["text"]) == (True, "≥ 1,443 · generator")
    assert rows["naive/nginx-basic-cold/detail"]["text"] == "≥ 323 · VU cap"
    assert (rows["naive/none/detail"]["open"], rows["naive/none/detail"]["text"]) == (False, "1.8")
    assert rows["fast/nginx-protected-warm/detail"]["text"] == "failed"


def test_ramp_that_held_is_marked_as_lower_bound():
    header, cells = load()
    find_cell(cells, "naive/none/detail").update(
        outcome="held", limited_by="none", break_point=None
    )
    assert "| none | no cache | *≥ 1.8, limited by the end of the load* |" in _markdown(
        header, cells
    )


def test_cell_without_a_response_in_time_says_so():
    header, cells = load()
    find_cell(cells, "naive/none/detail").update(goodput=0.0)
    text = _markdown(header, cells)
    assert "| none | no cache | none in time |" in text
    assert "none gave no answers in time per second" in text


def test_repeats_show_median_and_range(sample):
    assert "| 60.7 (57.8–63.6) |" in sample
    assert "| naive/redis-page/detail | measured | 2 of 2 | 60.7 (57.8–63.6) |" in sample


def test_failed_missing_and_excluded_cells_are_named(sample):
    assert "| fast/nginx-protected-warm/detail | 1 | The cache layer nginx is not on: no" in sample
    assert "| naive/none/article | *not measured* | 0 of 1 | – |" in sample
    assert "| fast/local/booking | A booking is never cached. |" in sample


def test_published_and_measured_values_share_a_row():
    header, cells = load()
    header["published"][1]["cell"] = "naive/redis-page/detail"
    header["published"][0]["cell"] = "naive/none/detail"
    text = _markdown(header, cells)
    assert re.search(r"\| Redis \| 81\.0 \| [\d.]+ \| 5\.1 × \| [\d.]+ × \| 11,000 \|", text)
    assert "compare the steps from one layer to the next" in text


def test_report_lists_all_conditions(sample):
    for text in (
        "| machine | AMD EPYC, 2 CPUs, 7.8 GiB of memory |",
        "| CPUs | pinned: target on 0, load on 1 |",
        "| bounds | p95 1,000 ms, errors 1 %, 95 % of the requests that are due answered |",
        "| commit | 52f3e3d |",
        "- steal time 3 % while idle",
        "| LAB\\_WORKERS | 2 |",
    ):
        assert text in sample


def test_complete_run_has_no_notice(sample):
    assert not re.search(r"QUICK|INTERRUPTED|SHARED", sample)


@pytest.mark.parametrize(
    ("change", "notice"),
    [
        ({"quick": True}, "> **QUICK RUN: durations were scaled down, and cells may have been"),
        ({"state": "interrupted"}, "> **INTERRUPTED: 7 of 9 planned measurements are in this"),
        ({"state": "running", "ended": None}, "> **STILL RUNNING: 7 of 9 planned measurements"),
        ({"host": {"shared_cpus": True}}, "> **SHARED CPUs: the target and the load generator"),
    ],
)
def test_limitation_of_run_is_noted_at_top(change, notice):
    header, cells = load()
    text = _markdown({**header, **change}, cells)
    assert notice in text.split("## Claims")[0]


def test_cells_with_steal_time_are_named(sample):
    assert "NOISY MACHINE" not in sample
    header, cells = load()
    noisy = next(cell for cell in cells if cell["state"] == "measured")
    text = _markdown(header, [cell | {"steal": 0.21} if cell is noisy else cell for cell in cells])
    notices = text.split("## Claims")[0]
    assert (
        "**NOISY MACHINE: the hypervisor took 5% of the CPU time or more in 1 measurement"
        in notices
    )
    assert f"21% at most ({noisy['name']})" in notices


@pytest.mark.parametrize(("fastest", "has_warning"), [(11.4, False), (11.6, True)])
def test_changed_cpu_speed_is_reported(fastest, has_warning):
    header, cells = load()
    measured = [cell for cell in cells if cell["state"] == "measured"]
    speeds = dict(zip([id(cell) for cell in measured], [10.0, fastest], strict=False))
    text = _markdown(header, [c | {"cpu_speed": speeds.get(id(c), 10.5)} for c in cells])
    notices = text.split("## Claims")[0]
    slow, fast = (f"({cell['name']}, repeat {cell['repeat']})" for cell in measured[:2])
    ratio = f"1.2 × as fast around one measurement {fast} as around another {slow}"
    assert ("**UNSTEADY MACHINE" in notices, ratio in notices) == (has_warning, has_warning)


def test_thinned_windows_include_ends_and_break():
    windows = [Window(float(end), 0, 0, 0, 0, 0, 0, None) for end in range(5, 605)]
    ends = [window.end for window in thin_windows(windows, 338.0)]
    assert (ends[0], ends[-1]) == (5.0, 604.0)
    assert 338.0 in ends
    assert len(ends) <= 63


def test_constant_rate_is_drawn_over_time():
    header, cells = load()
    for cell in cells:
        for window in cell.get("windows", []):
            window["offered"] = 20.0
    picture = curves(build(header, runs(cells), []), "detail")
    assert picture.caption.startswith("Over the seconds since the load began")


def _data(panel):
    """Return the rows of a panel from either place where Altair stores them."""
    inline = panel["data"].get("values")
    return inline if inline is not None else panel["datasets"][panel["data"]["name"]]
