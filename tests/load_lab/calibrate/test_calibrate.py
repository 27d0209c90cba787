"""`lab calibrate`: its checks, its document and its documentation."""

import re
from dataclasses import replace

import pytest

from load_lab.calibrate import checks, wording
from load_lab.calibrate.calibration import cell_document, exit_code, instrument_error
from load_lab.calibrate.cells import CELLS, select_cells
from load_lab.calibrate.checks import Check, compare
from load_lab.console import Console
from load_lab.paths import ROOT
from tests.support.calibrate_samples import BY_NAME, RESULT, SAMPLE

# --- Checks

LATE = replace(RESULT.break_point, rate=211, goodput=200)
# Prometheus's percentiles when k6's p99 is 25 ms.
AT_25_MS = {**SAMPLE.prometheus_ms, 99: 25.0}


def _missed_checks(name, **changes):
    """Return the missed checks of a cell after `changes` to its measurements."""
    metrics = {"limited_by": BY_NAME[name].limit, **changes.pop("metrics", {})}
    measurement = replace(SAMPLE, result=RESULT.model_copy(update=metrics), **changes)
    return [
        check.what for check in compare(BY_NAME[name], [measurement]) if check.outcome != "held"
    ]


@pytest.mark.parametrize("name", ["fixed", "exponential", "queue", "capped", "roomy", "starved"])
def test_correct_measurement_passes(name):
    assert _missed_checks(name) == []


@pytest.mark.parametrize(
    ("name", "changes", "missed"),
    [
        ("fixed", {"metrics": {"p95_ms": 22.2}}, ["k6's p95"]),
        ("fixed", {"metrics": {"p99_ms": 25.2}, "prometheus_ms": AT_25_MS}, ["k6's p99"]),
        ("fixed", {"metrics": {"p99_ms": 19.6}}, ["k6's p99"]),
        ("fixed", {"metrics": {"p50_ms": 19.6}}, ["k6's p50"]),
        ("fixed", {"floor_ms": 0.9}, [f"k6's p{share}" for share in checks.SHARES]),
        (
            "fixed",
            {"prometheus_ms": {**SAMPLE.prometheus_ms, 99: 22.3}},
            ["Prometheus's p99"],
        ),
        (
            "fixed",
            {"prometheus_ms": {**SAMPLE.prometheus_ms, 99: None}},
            ["Prometheus's p99"],
        ),
        ("fixed", {"metrics": {"rps": 197.5}}, ["requests per second"]),
        ("fixed", {"metrics": {"goodput": 173.0}}, ["goodput, best 5 s"]),
        ("fixed", {"metrics": {"requests": 999}}, ["requests in k6's summary"]),
        ("fixed", {"prometheus_requests": 999.0}, ["requests in Prometheus"]),
        ("fixed", {"prometheus_requests": None}, ["requests in Prometheus"]),
        ("fixed", {"metrics": {"failed": 1}}, ["failed requests"]),
        (
            "queue",
            {"metrics": {"break_point": replace(RESULT.break_point, rate=211, goodput=200)}},
            ["break point"],
        ),
        (
            "queue",
            {"metrics": {"break_point": None}},
            ["break point", "goodput at the break"],
        ),
        ("queue", {"metrics": {"limited_by": "vu_cap"}}, ["limited by"]),
        ("capped", {"metrics": {"limited_by": "target"}}, ["limited by"]),
        ("starved", {"metrics": {"limited_by": "target"}}, ["limited by"]),
        ("roomy", {"metrics": {"limited_by": "generator_cpu"}}, ["limited by"]),
    ],
)
def test_wrong_measurement_is_missed(name, changes, missed):
    assert _missed_checks(name, **changes) == missed


def test_k6_overhead_is_allowed_only_upwards():
    """The allowance is in milliseconds, so it is negligible for longer times."""
    overhead = {"p50_ms": 20.6, "p90_ms": 21.0, "p95_ms": 22.0, "p99_ms": 25.0}
    assert _missed_checks("fixed", metrics=overhead, prometheus_ms=AT_25_MS) == []
    measurement = replace(
        SAMPLE, floor_ms=400.0, result=RESULT.model_copy(update={"p99_ms": 430.0})
    )
    checks_by_name = {check.what: check for check in compare(BY_NAME["fixed"], [measurement])}
    assert checks_by_name["k6's p99"].outcome == "missed"


# --- Document


def _document(*checks_by_cell):
    return {
        **{"quick": True, "warnings": ["it is loud"], "files": {"result": "results/x"}},
        "host": {"shared_cpus": False, "target_cpus": "0", "load_cpus": "1"},
        "cells": [
            cell_document(BY_NAME[name], [SAMPLE], checks) for name, checks in checks_by_cell
        ],
    }


def test_only_missed_check_is_a_failure():
    met, missed = Check("a", 1.0, 1.0, 0.1), Check("a", 1.0, 2.0, 0.1)
    assert exit_code(_document(("fixed", [met]))) == 0
    assert exit_code(_document(("fixed", [met, replace(missed, void="noise")]))) == 3
    assert exit_code(_document(("fixed", [met]), ("queue", [met, missed]))) == 1


def test_instrument_error_is_what_it_adds_whatever_is_allowed():
    checks = [
        Check("k6's p99", 100.0, 104.0, 0.02, " ms", allowed_above=0.05),
        Check("k6's p99", 50.0, 52.0, 0.02, " ms", allowed_above=0.05),
        Check("Prometheus's p99", 50.0, 60.0, 1.1, " ms", factor=True),
    ]
    document = _document(("fixed", checks))
    document["instrument_ms"] = instrument_error(document["cells"])
    assert document["instrument_ms"] == {"p99": {"mean": 3.0, "most": 4.0}}
    console = Console(width=160, record=True)
    console.print(wording.calibration(document))
    text = console.export_text()
    assert "The instrument's own error, added to response times: p99 3.00 ms (at most 4.00)" in text


def test_table_shows_worst_run_and_every_warning():
    console = Console(width=160, record=True)
    repeats = [Check("rate", 200.0, rate, 0.01, "/s") for rate in (200.0, 190.0, 201.0)]
    void = Check("spread", 0.0, 0.07, 0.05, void="the hypervisor took 6%")
    console.print(wording.calibration(_document(("fixed", repeats), ("queue", [void]))))
    text = console.export_text()
    assert re.search(r"rate \(worst of 3\).*200/s.*190/s.*-5\.00 %.*1 %.*missed", text)
    assert "queue, spread: void, since the hypervisor took 6%" in text
    assert "Warning: it is loud." in text
    assert "In full: results/x" in text


# --- Options


def test_quick_mode_is_shorter_but_long_enough_to_judge():
    full = select_cells([], quick=False, generators=1)
    quick = select_cells([], quick=True, generators=1)
    assert [cell.name for cell in full] == [cell.name for cell in quick]
    assert sum(c.seconds * c.repeats for c in quick) < sum(c.seconds * c.repeats for c in full) / 2
    assert all(cell.seconds >= 7 for cell in quick if cell.profile != "closed")


def test_wrong_input_is_one_message(lab):
    result = lab("calibrate", "--only", "quantum")
    assert result.is_one_message(2)
    assert "Known: fixed, exponential, queue" in result.err


PAGE = (ROOT / "docs/calibration.md").read_text()


def _row(begin):
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| {begin}"))
    return [cell.strip() for cell in row.strip("|").split(" | ")]


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_docs_list_each_cell_with_its_load(cell):
    name, _, load, _ = _row(f"`{cell.name}` ")
    if load.startswith("the same; "):
        other = next(each for each in CELLS if each.name == "roomy")
        assert (cell.rate, cell.seconds, cell.max_vus) == (other.rate, other.seconds, other.max_vus)
        return
    assert f"{cell.seconds} s" in load, name
    assert cell.rate is None or f"{cell.rate}/s" in load
    users = cell.max_vus or cell.vus
    assert users is None or f"{users} virtual users" in load
    assert cell.repeats == 1 or {5: "five"}[cell.repeats] in load


@pytest.mark.parametrize(
    ("row", "limit"),
    [
        ("k6's p50", checks.TIMES),
        ("requests per second", checks.RATES),
        ("break point, goodput", checks.BREAK),
        ("goodput of five repeats", checks.SPREAD),
        ("the same, each goodput", checks.SPREAD),
    ],
)
def test_docs_list_each_limit(row, limit):
    assert _row(row)[-1] == f"{100 * limit:g} %"


def test_docs_list_allowed_k6_overhead():
    overhead = checks.OWN_WORK_MS
    texts = [f"{overhead[share]:g} ms" for share in checks.SHARES]
    sentence = "up to {} more at p50, {} at p90, {} at p95 and {} at p99".format(*texts)
    assert sentence in PAGE


def test_docs_state_bucket_factor():
    assert _row("Prometheus's p50")[-1] == f"one bucket: factor {checks.BUCKET:g}"
