"""What `lab compare` compares, and what it refuses."""

from contextlib import nullcontext

import pytest
import typer
from support.commits import commit_with, git

from load_lab.compare import cost
from load_lab.compare.blocks import Block, CompareOptions, Session
from load_lab.compare.cli import _exit_by_verdict
from load_lab.compare.comparison import run
from load_lab.compare.cost import Side
from load_lab.compare.page import facts_of
from load_lab.compare.result import document_of, headline
from load_lab.errors import LabError, UsageError
from load_lab.paths import current_state
from load_lab.settings import load_settings
from load_lab.stack.native import NativeEngine
from load_lab.targets.file import Variation
from load_lab.targets.reference import variants
from load_lab.targets.reference.subject import ReferenceSubject
from load_lab.targets.reference.variants import (
    code_of,
    find_variant,
    require_comparable,
    settings_with,
)
from load_lab.targets.subject import Running, Variant
from load_lab.targets.target import PlainServer


@pytest.mark.parametrize(
    ("verdict", "is_control", "code"),
    [("slower", False, 1), ("slower", True, 0), ("can't tell", True, 3), ("faster", False, 0)],
)
def test_exit_code_is_that_of_the_verdict(verdict, is_control, code):
    document = {"verdict": verdict, "is_control": is_control}
    with pytest.raises(typer.Exit) if code else nullcontext() as error:
        _exit_by_verdict(document, strict=True)
    assert not code or error.value.exit_code == code


def test_variants_are_presets_settings_commits_or_the_checkout():
    assert "LAB_DETAIL" in find_variant("best").changes.options
    settings = settings_with(load_settings(), find_variant("LAB_DETAIL=fast, LAB_WORKERS=3"))
    assert (settings.LAB_DETAIL, settings.LAB_WORKERS) == ("fast", 3)
    assert find_variant("HEAD").changes.git == git("rev-parse", "HEAD")
    assert find_variant(".") == Variant(".")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no-such-branch", "no-such-branch is no preset (article, best"),
        ("LAB_DETAIL=fast,naive", "'naive' in 'LAB_DETAIL=fast,naive' is not a setting"),
    ],
)
def test_unknown_variant_is_a_usage_error(text, message):
    with pytest.raises(UsageError) as error:
        find_variant(text)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [("LAB_DETAIL=quick", "LAB_DETAIL=quick is invalid"), ("LAB_HTTP_PORT=1", "can't change")],
)
def test_setting_that_a_running_stack_can_not_have_is_a_usage_error(text, message):
    with pytest.raises(UsageError, match=message):
        _run(CompareOptions(find_variant(text), find_variant("."), "detail", 360, 0.05))


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"budget": 30}, "--budget 30s is too short"), ({"threshold": 0}, "0% is too low")],
)
def test_options_without_an_answer_are_usage_errors(changes, message):
    known = {"budget": 360, "threshold": 0.05} | changes
    with pytest.raises(UsageError, match=message):
        _run(CompareOptions(Variant("."), Variant("."), "detail", **known))


def _run(options):
    """Compare, as far as the options allow it."""
    subject = ReferenceSubject(NativeEngine(current_state()), "detail", base=load_settings())
    run(subject, options, at_once=True)


def test_commit_of_another_schema_is_refused():
    commit = commit_with({"backend/hotels/migrations/0099_more.py": "# more"})
    with pytest.raises(UsageError, match="has other migrations than this checkout \\(0099_more\\)"):
        require_comparable((find_variant("HEAD"), find_variant(commit)))


def test_commit_without_the_settings_of_the_lab_is_too_old():
    commit = commit_with({"backend/lab_settings/declaration.py": None})
    with pytest.raises(UsageError, match="is too old for this lab"):
        require_comparable((find_variant(commit), find_variant("HEAD")))


def test_commit_whose_requirements_can_not_be_installed_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(variants, "_ENVIRONMENTS", tmp_path)
    commit = commit_with({"backend/requirements.txt": "no-such-package-of-the-lab==1\n"})
    variant = find_variant(commit)
    with pytest.raises(LabError, match="can't be installed"), code_of(variant):
        pass
    assert commit not in git("worktree", "list")


def test_commit_without_a_setting_that_k6_checks_is_too_old():
    declaration = git("show", "HEAD:backend/lab_settings/declaration.py")
    commit = commit_with(
        {"backend/lab_settings/declaration.py": declaration.replace("LAB_SHED", "LAB_OLD")}
    )
    with pytest.raises(UsageError, match="its backend has no LAB_SHED"):
        require_comparable((find_variant(commit), find_variant("HEAD")))


def test_code_of_a_commit_has_its_files_and_an_environment():
    commit = commit_with({"backend/mark.txt": "mark"})
    with code_of(find_variant(commit)) as folder:
        assert (folder / "backend/mark.txt").read_text() == "mark"
        assert (folder / ".venv/bin/python").exists()
    assert not folder.exists()


def _session(*requests):
    """Return a session of equal cost whose blocks have these failed and late requests in B."""
    changed = Variant("b", Variation(options={"LAB_DETAIL": "fast"}))
    session = Session(CompareOptions(Variant("a"), changed, "detail", 360, 0.05))
    for number, (failed, late) in enumerate(requests, 1):
        a, b = (Side(100, *counts, 20, 25, 30, 40, None) for counts in ((0, 0), (failed, late)))
        session.blocks.append(Block(number, a, b, swapped=number % 2 == 0, control=False))
    return session


@pytest.mark.parametrize(
    ("requests", "text"),
    [
        ([(0, 20)] * 4, "slower: 20.0% of B's requests took longer than 1,000 ms, 0.0% of A's"),
        ([(3, 0)] * 4, "slower: 3.0% of B's requests failed, 0.0% of A's"),
        # A burst in one block.
        ([(0, 40), (0, 0), (0, 0), (0, 0)], "not slower by 5%: B needs 1 × the CPU per request"),
        ([(0, 20)] * 2, "can't tell: 2 blocks are too few"),
    ],
)
def test_late_and_failed_requests_decide_too(requests, text):
    session = _session(*requests)
    assert headline(session).startswith(text)
    assert text.startswith(session.verdict)
    assert session.is_clear is (len(requests) == 4)


def test_process_that_was_replaced_during_a_block_is_an_error():
    pids = [{"backend": 1, "postgres": 2}, {"backend": 3, "postgres": 2}]
    target = PlainServer("shop", "http://127.0.0.1:1", "the shop")
    running = Running(None, load_settings(), target, lambda: pids.pop(0))
    meter = cost._Meter([running], [], 20)
    meter.pids = meter._find_pids()
    with pytest.raises(LabError, match="the shop: backend ended or was restarted"):
        meter._require_same(meter._find_pids())


def _of_services(**cpu_ms):
    return Side(100, 0, 0, sum(cpu_ms.values()) or 5, 25, 30, 40, None, services=cpu_ms)


@pytest.mark.parametrize(
    ("sides", "expected", "left_out"),
    [
        # In all blocks of both.
        ([({"target": 7, "postgres": 8}, {"target": 7, "postgres": 9})] * 2, [(15, 16)] * 2, []),
        # In one arm only: A against A gave 15.2 against 7.1 ms.
        ([({"target": 7, "postgres": 8}, {"target": 7})] * 2, [(7, 7)] * 2, ["postgres"]),
        # Found in the second block.
        (
            [
                ({"target": 7}, {"target": 7}),
                ({"target": 7, "redis": 1}, {"target": 7, "redis": 2}),
            ],
            [(7, 7), (7, 7)],
            ["redis"],
        ),
        # Of the reference app they are known: what one of both lacks costs it nothing.
        ([({}, {})], [(5, 5)], []),
    ],
)
def test_service_counts_in_all_blocks_of_both_or_in_none(sides, expected, left_out):
    session = Session(CompareOptions(Variant("."), Variant("."), None, 360, 0.05))
    for number, (a, b) in enumerate(sides, 1):
        session.add(Block(number, _of_services(**a), _of_services(**b), False, control=False))
    assert [(block.a.cpu_ms, block.b.cpu_ms) for block in session.blocks] == expected
    assert session.services[1] == left_out
    lines = dict(facts_of(_document(session)))
    assert ("not counted" in lines) == bool(left_out)


def _document(session):
    load = cost.BlockLoad(None, 10, 5, 1000)
    head = {name: {"name": ".", "commit": None} for name in "ab"} | {"scenario": "mix"}
    head |= {"is_control": True, "how": "in turns", "host": {"cpus": 2}}
    return document_of(head, session, load, 20)
