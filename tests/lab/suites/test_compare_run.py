"""`lab compare` on two real stacks at once."""

import shutil

import pytest
from support.commits import commit_with

from lab.cli.output.comparison import comparison as render
from lab.cli.output.comparison import markdown
from lab.console import Console
from lab.errors import LabError
from lab.paths import ROOT
from lab.settings import update_settings
from lab.suites.comparison.command import CompareOptions, run
from lab.suites.comparison.variants import find_variant

# These tests load the machine for minutes.
pytestmark = pytest.mark.alone


def _compare(stack, a, b, **options):
    settings = {"budget": 240, "threshold": 0.05, "block_seconds": 5} | options
    base = update_settings(stack.settings(), ["LAB_DETAIL=fast"])
    return run(base, CompareOptions(find_variant(a), find_variant(b), "detail", **settings))


def test_cached_pages_need_less_cpu(stack):
    before = stack.settings()
    document = _compare(stack, "LAB_REDIS_CACHE=off", "LAB_REDIS_CACHE=versioned")
    assert document["verdict"] == "faster", document["headline"]
    ratio = document["ratios"]["cpu_ms"]
    assert ratio["high"] < 0.8
    blocks = [block for block in document["blocks"] if not block["control"]]
    assert len(blocks) >= 4
    # Equal rates: the loads differ by a request or two.
    for block in blocks:
        assert block["a"]["requests"] == pytest.approx(block["b"]["requests"], rel=0.1)
    # A in both stacks, in the same session.
    assert document["control"]
    assert all(0.9 < control < 1.1 for control in document["control"])
    assert stack.settings() == before
    _check_output(document)
    shutil.rmtree(ROOT / document["files"]["folder"])


def _check_output(document):
    console = Console(width=160)
    with console.capture() as capture:
        console.print(render(document))
    assert document["headline"] in capture.get()
    text = markdown(document)
    assert text.startswith("**faster: B needs")
    assert "| CPU per request, ms |" in text
    assert all((ROOT / path).exists() for path in document["files"].values())


def test_variant_that_does_not_start_is_named_with_its_log(stack):
    commit = commit_with({"backend/config/wsgi.py": "raise RuntimeError('broken on purpose')"})
    before = stack.settings()
    with pytest.raises(LabError) as error:
        _compare(stack, "HEAD", commit)
    assert f"{commit} does not start" in str(error.value)
    assert "broken on purpose" in str(error.value)
    assert stack.settings() == before
