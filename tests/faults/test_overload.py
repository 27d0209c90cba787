"""More load than the target's capacity: goodput with and without shedding, and recovery."""

import json

import pytest

from load_lab.overload.overload import SUCCESS_LABEL
from load_lab.paths import ROOT
from load_lab.settings import update_settings

# Share of the goodput. Without shedding it is 0.02; `lab overload` requires 0.9.
MIN_GOODPUT_SHARE = 0.6


@pytest.fixture(scope="module")
def overload(lab, stack, results):
    """Run `lab overload` with uncached pages; check that the exit code reports violated limits."""
    stack.apply(update_settings(stack.settings(), ["LAB_DETAIL=fast"]))
    result = _run_overload(lab)
    assert result.out, result.err
    assert result.code == (0 if all(check["kept"] for check in result.json["figures"]) else 1)
    return result.json


def _run_overload(lab):
    """Run `lab overload`; run it again if the lab reports that there was no overload to judge."""
    result = lab("overload", "--scenario", "detail", "--json")
    reason = _reason_to_repeat(result)
    if not reason:
        return result
    print(f"measured again: {reason}")
    return lab("overload", "--scenario", "detail", "--json")


def _reason_to_repeat(result):
    """Return the reason: for example no CPU for k6's pushes, or a CPU twice as fast as before."""
    if "can't be judged" in result.err:
        return result.err.strip().splitlines()[-1]
    if not result.out:
        return ""
    check = next(check for check in result.json["figures"] if check["what"] == SUCCESS_LABEL)
    return "" if check["kept"] else f"{SUCCESS_LABEL}: {check['value']}"


@pytest.fixture(scope="module")
def arms(overload):
    return {arm["name"].removeprefix("LAB_SHED="): arm for arm in overload["arms"]}


def test_offered_rate_is_twice_the_capacity(overload, arms):
    """With shedding, k6 sends nearly all of it; without, k6's users wait for answers."""
    limit = overload["limit"]["rate"]
    assert {arm["rate"] for arm in overload["arms"]} == {round(2 * limit)}
    # 20 s at the full rate, after 10 s and before 20 s at a quarter of it.
    planned = 2 * limit * (20 + (10 + 20) / 4)
    for arm in overload["arms"]:
        assert sum(arm["statuses"].values()) == arm["requests"]
        assert arm["requests"] + arm["dropped"] == pytest.approx(planned, rel=0.03)
    assert arms["on"]["unsent_share"] <= 0.05


def test_shedding_meets_every_limit(overload, arms):
    """Except the goodput's limit, which also depends on the CPU's speed during the search."""
    violations = [check["what"] for check in overload["figures"] if not check["kept"]]
    assert set(violations) <= {"goodput ÷ capacity"}
    assert arms["on"]["goodput_share"] > MIN_GOODPUT_SHARE


def test_surplus_requests_are_rejected(arms):
    """The surplus is rejected, not late; its size depends on the CPU's speed."""
    shed = arms["on"]
    start, end = shed["spike"]
    surplus = (end - start) * (shed["rate"] * (1 - shed["unsent_share"]) - shed["goodput"])
    assert set(shed["statuses"]) == {"200", "503"}
    assert shed["statuses"]["503"] > 0.9 * surplus


def test_goodput_collapses_without_shedding(arms):
    """Every request is answered too late: shedding exists to prevent this collapse."""
    assert "503" not in arms["off"]["statuses"]
    assert arms["off"]["goodput_share"] < arms["on"]["goodput_share"] / 2
    late = arms["off"]["accepted_p95_ms"]
    assert late is None or late > 2 * arms["on"]["accepted_p95_ms"]


def test_document_has_windows_and_host(overload):
    document = json.loads((ROOT / overload["files"]["result"]).read_text())
    assert all(len(arm["windows"]) > 40 for arm in document["arms"])
    assert document["host"]["engine"] == "native"
    assert (ROOT / overload["files"]["picture"]).read_bytes().startswith(b"\x89PNG")
