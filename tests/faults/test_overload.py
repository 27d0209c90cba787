"""More load than the target bears: shed it stays useful, unshed it drowns, and it comes back."""

import json

import pytest

from lab.paths import ROOT
from lab.settings import changed
from lab.suites.overload import SERVED

# Without shedding it is 0.02; `lab overload` itself asks for 0.9.
SURELY_USEFUL = 0.6


@pytest.fixture(scope="module")
def overloaded(lab, stack, results):
    """`lab overload` of uncached pages; its exit code says whether every bound is kept."""
    stack.apply(changed(stack.settings(), ["LAB_DETAIL=fast"]))
    said = _said(lab)
    assert said.out, said.err
    assert said.code == (0 if all(each["kept"] for each in said.json["figures"]) else 1)
    return said.json


def _said(lab):
    """Once more where there was no overload to judge, by the lab's own word."""
    said = lab("overload", "--scenario", "detail", "--json")
    why = _why_it_was_none(said)
    if not why:
        return said
    print(f"measured again: {why}")
    return lab("overload", "--scenario", "detail", "--json")


def _why_it_was_none(said):
    """As when k6 had no CPU to push with, or the CPU was twice as fast as in the ramp."""
    if "can't be judged" in said.err:
        return said.err.strip().splitlines()[-1]
    if not said.out:
        return ""
    served = next(figure for figure in said.json["figures"] if figure["what"] == SERVED)
    return "" if served["kept"] else f"{SERVED}: {served['value']}"


@pytest.fixture(scope="module")
def arms(overloaded):
    return {arm["shed"]: arm for arm in overloaded["arms"]}


def test_twice_of_what_broke_it_was_asked(overloaded, arms):
    """With shedding nearly all of it; without, k6's users are among those that wait."""
    limit = overloaded["limit"]["rate"]
    assert {arm["rate"] for arm in overloaded["arms"]} == {round(2 * limit)}
    # 20 s of it between 10 s and 20 s of a quarter of it.
    planned = 2 * limit * (20 + (10 + 20) / 4)
    for arm in overloaded["arms"]:
        assert sum(arm["statuses"].values()) == arm["requests"]
        assert arm["requests"] + arm["dropped"] == pytest.approx(planned, rel=0.03)
    assert arms["on"]["unsent_share"] <= 0.05


def test_shedding_keeps_every_bound(overloaded, arms):
    """But for the goodput's: that is as much the CPU's, whose speed was another in the ramp."""
    broken = [figure["what"] for figure in overloaded["figures"] if not figure["kept"]]
    assert set(broken) <= {"goodput ÷ the best before the break"}
    assert arms["on"]["goodput_share"] > SURELY_USEFUL


def test_what_is_not_answered_well_is_refused(arms):
    """And not late. How much that is, the CPU's speed decides."""
    shed = arms["on"]
    begun, ended = shed["spike"]
    surplus = (ended - begun) * (shed["rate"] * (1 - shed["unsent_share"]) - shed["goodput"])
    assert set(shed["statuses"]) == {"200", "503"}
    assert shed["statuses"]["503"] > 0.9 * surplus


def test_without_shedding_the_same_load_drowns_it(arms):
    """Everybody is served, too late: the collapse that shedding is there for."""
    assert "503" not in arms["off"]["statuses"]
    assert arms["off"]["goodput_share"] < arms["on"]["goodput_share"] / 2
    late = arms["off"]["accepted_p95_ms"]
    assert late is None or late > 2 * arms["on"]["accepted_p95_ms"]


def test_the_document_has_the_course_and_the_machine(overloaded):
    document = json.loads((ROOT / overloaded["files"]["result"]).read_text())
    assert all(len(arm["windows"]) > 40 for arm in document["arms"])
    assert document["host"]["engine"] == "native"
    assert (ROOT / overloaded["files"]["picture"]).read_bytes().startswith(b"\x89PNG")
