"""Stored capacities compared by `lab compare`."""

import json
import shutil

import pytest

from load_lab.paths import project
from load_lab.results.provenance import SCHEMA_VERSION

HOST = {
    **{"system": "Linux", "cpus": 2, "memory_bytes": 1, "engine": "native"},
    **{"target_cpus": "0", "load_cpus": "1"},
}
SLO = {"p95_ms": 300, "errors": 0.01}


@pytest.fixture
def stored():
    """Return a function that stores a capacity and returns its name."""
    folders = []

    def store(rate, low, high, host=None, **changes):
        folder = project().results / f"capacity-20260101-{len(folders):06}"
        folder.mkdir(parents=True)
        folders.append(folder)
        document = {
            "schema_version": SCHEMA_VERSION,
            **{"outcome": "confirmed", "rate": rate, "low": low, "high": high, "slo": SLO},
            **{"target": "hotel", "scenario": "detail", "only": None, "host": host or HOST},
            "cpu_speed": 6.0,
            **changes,
        }
        (folder / "result.json").write_text(json.dumps(document))
        return folder.name

    yield store
    for folder in folders:
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("rate", "low", "high", "code", "verdict"),
    [
        (80, 78, 82, 1, "slower"),
        (120, 117, 123, 0, "faster"),
        (110, 109, 111, 0, "not slower"),
        # Sessions differ by more than these intervals.
        (95, 94, 96, 0, "can't tell"),
    ],
)
def test_verdict_follows_from_both_intervals(lab, stored, rate, low, high, code, verdict):
    first, second = stored(100, 99, 101), stored(rate, low, high)
    result = lab("compare", first, second, "--json")
    assert (result.code, result.json["verdict"]) == (code, verdict), result.err
    assert lab("compare", first, second).out.startswith(verdict)


def test_capacity_that_is_not_confirmed_decides_nothing(lab, stored):
    names = stored(100, 99, 101), stored(80, 78, 82, outcome="unconfirmed")
    found = lab("compare", *names, "--json").json
    assert found["verdict"] == "can't tell"
    assert f"{names[1]} is not confirmed" in found["headline"]


def test_capacities_are_compared_at_equal_speed_of_the_cpu(lab, stored):
    # 20 % less, on CPUs that were 20 % slower.
    names = stored(100, 99, 101), stored(80, 79, 81, cpu_speed=4.8)
    found = lab("compare", *names, "--json").json
    assert found["ratio"]["ratio"] == pytest.approx(1.0)
    assert found["verdict"] == "can't tell"
    unknown = stored(80, 79, 81, cpu_speed=None)
    assert "the CPU's speed is not in" in lab("compare", names[0], unknown).out


def test_stored_capacity_is_not_compared_with_a_variant(lab, stored):
    result = lab("compare", stored(100, 99, 101), "HEAD")
    assert result.is_one_message(2)
    assert "is a stored capacity, and HEAD is none" in result.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--budget", "5m"), "--budget belongs to a new measurement"),
        (("--capacity",), "--capacity belongs to a new measurement"),
    ],
)
def test_option_of_a_measurement_is_refused(lab, stored, arguments, message):
    result = lab("compare", stored(100, 99, 101), stored(100, 99, 101), *arguments)
    assert result.is_one_message(2)
    assert message in result.err


def test_missing_capacity_is_a_usage_error(lab, stored):
    result = lab("compare", stored(100, 99, 101), "capacity-20200101-000000")
    assert result.is_one_message(2)
    assert "results/capacity-20200101-000000/result.json does not exist" in result.err


def test_list_shows_the_answer_of_a_search(lab, stored):
    name = stored(100, 99, 101, headline="100/s (99 to 101), confirmed")
    runs = lab("list", "runs", "--json").json["runs"]
    assert [run["about"] for run in runs if run["name"] == name] == ["100/s (99 to 101), confirmed"]


def test_search_that_an_error_ended_has_no_explanation(lab, stored):
    name = stored(None, None, None, outcome="failed", headline="no answer: the target is gone")
    result = lab("explain", name)
    assert result.is_one_message(2)
    assert "no answer: the target is gone" in result.err


def test_strict_has_an_exit_code_for_no_answer(lab, stored):
    assert lab("compare", stored(100, 80, 120), stored(100, 80, 120), "--strict").code == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"host": HOST | {"cpus": 8}}, "are of different machines (cpus: 2 and 8)"),
        ({"scenario": "list"}, "are for different loads (scenario: detail and list)"),
        ({"rate": None}, "has no interval"),
    ],
)
def test_results_that_can_not_be_compared_are_usage_errors(lab, stored, changes, message):
    values = {"rate": 100, "low": 99, "high": 101} | changes
    result = lab("compare", stored(100, 99, 101), stored(**values))
    assert result.is_one_message(2)
    assert message in result.err


def test_unreadable_result_is_a_usage_error(lab, stored):
    name = stored(100, 99, 101)
    (project().results / name / "result.json").write_text("no")
    result = lab("compare", name, name)
    assert result.is_one_message(2)
    assert "can't be read: not JSON" in result.err


def test_unknown_variant_is_a_usage_error(lab):
    result = lab("compare", "no-such-branch", "HEAD")
    assert result.is_one_message(2)
    assert "no-such-branch is no preset" in result.err
