"""`lab profile --after`: which operation of a stored run, and wrong input."""

import json
import secrets
import shutil

import pytest

from load_lab.diagnosis import wording
from load_lab.errors import LabError, UsageError
from load_lab.explain.explanation import explanation, find_load
from load_lab.paths import project
from load_lab.profile.after import FILE, choose, find_break
from load_lab.results.breakpoint import BreakPoint
from load_lab.results.result import OperationResult, Result, TargetName
from load_lab.settings import load_settings

URL = "http://127.0.0.1:8123"


def operation(name, after=None, mean=10.0, requests=100):
    return OperationResult(name=name, requests=requests, mean_ms=mean, exceeded_after=after)


@pytest.mark.parametrize(
    ("operations", "name", "why"),
    [
        ([operation("a")], "a", "it is the only operation"),
        ([operation("a", 20.0), operation("b", 26.0)], "a", "exceeded a limit first, after 20 s"),
        (
            [operation("a", 20.0), operation("b", 24.0, mean=99.0), operation("c")],
            "b",
            "b, a exceeded a limit within 5 s of each other; until then it took longest, 99",
        ),
        ([operation("a"), operation("b", mean=99.0)], "b", "no operation exceeded a limit for"),
    ],
)
def test_operation_that_exceeded_a_limit_first_is_chosen(operations, name, why):
    chosen, reason = choose(operations)
    assert chosen.name == name
    assert why in reason


@pytest.fixture
def folder():
    path = project().results / f"breakpoint-{secrets.token_hex(4)}"
    path.mkdir()
    yield path
    shutil.rmtree(path)


def store(folder, settings=None, **values):
    """Write the result of a load of a target that broke, or other values."""
    fields = {
        "testid": folder.name,
        "outcome": "broke",
        "verdict": "broke at 60/s",
        "break_point": BreakPoint(60.0, 66.0, 60.0, 20.0, ("p95 over 1000 ms",)),
        "target": TargetName(name="gone", url=URL),
        "scenario": "replay",
        "by_operation": [operation("GET /a/", 20.0), operation("GET /b/", requests=200)],
    }
    document = Result(**{**fields, **values}).document()
    document |= {"schema_version": 1, "files": {}}
    document |= {"bounds": {"p95_ms": 1000}, "host": {}}
    document |= {"settings": (settings or load_settings({})).model_dump()}
    (folder / "result.json").write_text(json.dumps(document))


def test_stored_break_has_its_target_and_operations(folder):
    store(folder)
    stored = find_break(folder.name)
    assert (stored.target.name, stored.rate) == ("gone", 60.0)
    assert [stored.share_of(each) for each in stored.operations] == [1 / 3, 2 / 3]
    # Ten requests of a journey.
    store(folder, unit="iterations", rps=500.0)
    assert find_break(folder.name).rate == 500.0


def test_search_has_the_operations_above_its_capacity(folder):
    capacity = folder.with_name("capacity-20991231-235959")
    capacity.mkdir()
    limit = {"operations": [operation("GET /a/").model_dump(mode="json")]}
    document = {"schema_version": 1, "target": "shop", "url": URL, "rate": 30.0, "limit": limit}
    document |= {"settings": load_settings({}).model_dump(), "headline": "30/s"}
    document |= {"scenario": "mix"}
    try:
        (capacity / "result.json").write_text(json.dumps(document))
        assert find_break(capacity.name).operations == [operation("GET /a/")]
        older = document | {"limit": {}}
        (capacity / "result.json").write_text(json.dumps(older))
        with pytest.raises(UsageError, match=r"no values of single operations.*--target shop"):
            find_break(capacity.name)
    finally:
        shutil.rmtree(capacity)


def test_target_whose_file_is_gone_is_named(lab, folder):
    store(folder)
    result = lab("profile", "--after", folder.name)
    assert result.is_one_message(2), result.err
    assert f"The run loaded gone ({URL}), and there is no" in result.err


def test_run_without_a_break_is_a_usage_error(lab, folder):
    store(folder, break_point=None, outcome="held", verdict="held 60/s")
    result = lab("profile", "--after", folder.name)
    assert result.is_one_message(2), result.err
    assert "found no break point (held 60/s). Find one: lab k6 breakpoint --target gone" in (
        result.err.replace("\n", " ")
    )


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--after", "no-such-run"), "There is no run no-such-run"),
        (("--after", "x", "--target", "shop"), "--target is that of the run x"),
        (("--after", "x", "--rate", "5"), "--rate is that of the run x"),
    ],
)
def test_wrong_input_is_one_message(lab, argv, message):
    result = lab("profile", *argv)
    assert result.is_one_message(2), result.err
    assert message in result.err


def test_operation_that_can_not_be_sent_alone_is_named(lab, stack, folder):
    url = stack.settings().target_url
    store(
        folder,
        stack.settings(),
        scenario="workbench",
        target=TargetName(name="hotel", url=url),
        by_operation=[operation("workbench_io_read", 20.0)],
    )
    result = lab("profile", "--after", folder.name)
    assert result.is_one_message(2), result.err
    assert "workbench_io_read exceeded a limit first, and can't be sent alone" in result.err


def test_last_line_stands_in_the_explanation(folder):
    store(folder)
    assert explanation(find_load(folder.name))["profile"] is None
    answer = {"profile": "profile-1", "operation": "GET /a/", "headline": "GET /a/: total"}
    (folder / FILE).write_text(json.dumps(answer))
    document = explanation(find_load(folder.name))
    assert document["profile"] == answer
    texts = wording.explanation(document).renderables
    assert "profile profile-1: GET /a/: total" in texts
    (folder / FILE).write_text("{")
    with pytest.raises(LabError, match=f"is damaged .* lab profile --after {folder.name}"):
        explanation(find_load(folder.name))
