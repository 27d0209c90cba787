"""More load than the target's capacity: goodput with and without shedding, and recovery."""

import json

import pytest

from lab.paths import ROOT
from lab.settings import update_settings
from lab.suites.overload import SERVED

# Share of the goodput. Without shedding it is 0.02; `lab overload` requires 0.9.
SURELY_USEFUL = 0.6


@pytest.fixture(scope="module")
def overloaded(lab, stack, results):
    """Run `lab overload` with uncached pages; check that the exit code reports violated limits."""
    stack.apply(update_settings(stack.settings(), ["LAB_DETAIL=fast"]))
    said = _said(lab)
    assert said.out, said.err
    assert said.code == (0 if all(each["kept"] for each in said.json["figures"]) else 1)
    return said.json


def _said(lab):
    """Run `lab overload`; run it again if the lab reports that there was no overload to judge."""
    said = lab("overload", "--scenario", "detail", "--json")
    why = _why_it_was_none(said)
    if not why:
        return said
    print(f"measured again: {why}")
    return lab("overload", "--scenario", "detail", "--json")


def _why_it_was_none(said):
    """Return the reason: for example no CPU for k6's pushes, or a CPU twice as fast as before."""
    if "can't be judged" in said.err:
        return said.err.strip().splitlines()[-1]
    if not said.out:
        return ""
    served = next(figure for figure in said.json["figures"] if figure["what"] == SERVED)
    return "" if served["kept"] else f"{SERVED}: {served['value']}"


@pytest.fixture(scope="module")
def arms(overloaded):
    return {arm["shed"]: arm for arm in overloaded["arms"]}


def test_offered_rate_is_twice_the_break_point(overloaded, arms):
    """With shedding, k6 sends nearly all of it; without, k6's users wait for answers."""
    limit = overloaded["limit"]["rate"]
    assert {arm["rate"] for arm in overloaded["arms"]} == {round(2 * limit)}
    # 20 s at the full rate, after 10 s and before 20 s at a quarter of it.
    planned = 2 * limit * (20 + (10 + 20) / 4)
    for arm in overloaded["arms"]:
        assert sum(arm["statuses"].values()) == arm["requests"]
        assert arm["requests"] + arm["dropped"] == pytest.approx(planned, rel=0.03)
    assert arms["on"]["unsent_share"] <= 0.05


def test_shedding_meets_every_limit(overloaded, arms):
    """Except the goodput's limit, which also depends on the CPU's speed during the ramp."""
    broken = [figure["what"] for figure in overloaded["figures"] if not figure["kept"]]
    assert set(broken) <= {"goodput ÷ the best before the break"}
    assert arms["on"]["goodput_share"] > SURELY_USEFUL


def test_surplus_requests_are_rejected(arms):
    """The surplus is rejected, not late; its size depends on the CPU's speed."""
    shed = arms["on"]
    begun, ended = shed["spike"]
    surplus = (ended - begun) * (shed["rate"] * (1 - shed["unsent_share"]) - shed["goodput"])
    assert set(shed["statuses"]) == {"200", "503"}
    assert shed["statuses"]["503"] > 0.9 * surplus


def test_goodput_collapses_without_shedding(arms):
    """Every request is answered too late: shedding exists to prevent this collapse."""
    assert "503" not in arms["off"]["statuses"]
    assert arms["off"]["goodput_share"] < arms["on"]["goodput_share"] / 2
    late = arms["off"]["accepted_p95_ms"]
    assert late is None or late > 2 * arms["on"]["accepted_p95_ms"]


def test_document_has_windows_and_host(overloaded):
    document = json.loads((ROOT / overloaded["files"]["result"]).read_text())
    assert all(len(arm["windows"]) > 40 for arm in document["arms"])
    assert document["host"]["engine"] == "native"
    assert (ROOT / overloaded["files"]["picture"]).read_bytes().startswith(b"\x89PNG")
