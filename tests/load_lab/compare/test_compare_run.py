"""`lab compare` on two real stacks at once, and of an app in turns."""

import json
import shutil
import sys

import pytest
from support.commits import commit_with
from support.ports import free_port

from load_lab.compare.blocks import CompareOptions
from load_lab.compare.comparison import run
from load_lab.compare.cost import BlockLoad, Order
from load_lab.compare.page import add_page
from load_lab.compare.trials import Trials
from load_lab.compare.wording import comparison as render
from load_lab.compare.wording import markdown
from load_lab.console import Console
from load_lab.errors import LabError, UsageError
from load_lab.paths import ROOT
from load_lab.settings import update_settings
from load_lab.targets.declared import find_target
from load_lab.targets.own import OwnSubject
from load_lab.targets.reference.subject import ReferenceSubject
from load_lab.targets.reference.two_stacks import two_stacks
from load_lab.targets.subject import AS_IS

# These tests load the machine for minutes.
pytestmark = pytest.mark.alone


def _compare(stack, a, b, **options):
    settings = {"budget": 240, "threshold": 0.05, "block_seconds": 5} | options
    base = update_settings(stack.settings(), ["LAB_DETAIL=fast"])
    subject = ReferenceSubject(stack, "detail", base=base)
    options = CompareOptions(subject.variant(a), subject.variant(b), "detail", **settings)
    return run(subject, options, at_once=True)


def test_cached_pages_need_less_cpu(stack):
    before = stack.settings()
    document = _compare(stack, "LAB_REDIS_CACHE=off", "LAB_REDIS_CACHE=versioned")
    assert document["verdict"] == "faster", document["headline"]
    ratio = document["ratios"]["cpu_ms"]
    assert ratio["high"] < 0.8
    blocks = [block for block in document["blocks"] if not block["control"]]
    assert len(blocks) >= 4
    # Equal rates. A single block may begin or end where the machine stood still for a second.
    answered = [sum(block[side]["requests"] for block in blocks) for side in ("a", "b")]
    assert answered[0] == pytest.approx(answered[1], rel=0.05)
    # A in both stacks, in the same session.
    assert document["control"]
    assert all(0.9 < control < 1.1 for control in document["control"])
    assert stack.settings() == before
    _check_output(document)
    shutil.rmtree(ROOT / document["files"]["folder"])


def test_bookings_of_a_comparison_are_removed(stack, tmp_path):
    base = update_settings(stack.settings(), ["LAB_BOOKING=fast"])
    load = BlockLoad("booking", rate=10.0, seconds=4, limit_ms=1000)
    with two_stacks(base, writes=True) as stacks:
        counts = [_bookings(one) for one in stacks]
        trials = Trials(stacks, "booking")
        trials.block((AS_IS, AS_IS), load, tmp_path / "block", Order.of_block(1))
        during = [_bookings(one) for one in stacks]
    assert all(after > before for before, after in zip(counts, during, strict=True))
    with two_stacks(base) as stacks:
        assert [_bookings(one) for one in stacks] == counts


def _bookings(stack):
    return int(stack.engine.sql("hotel", "SELECT count(*) FROM hotels_booking")[0])


@pytest.mark.full
def test_capacity_of_each_variant_is_searched(stack):
    document = _compare(stack, "LAB_DETAIL=naive", "LAB_DETAIL=fast", with_capacity=True)
    capacity = document["capacity"]
    assert capacity["b"]["low"] > capacity["a"]["high"]
    (row,) = [line for line in markdown(document).splitlines() if line.startswith("| capacity")]
    assert capacity["headlines"]["a"] in row
    # B ÷ A: more is better.
    assert f"| {1 / capacity['ratio']['ratio']:.3f} |" in row
    assert capacity["ratio"]["ratio"] < 1
    shutil.rmtree(ROOT / document["files"]["folder"])


def _check_output(document):
    console = Console(width=160)
    with console.capture() as capture:
        console.print(render(document))
    assert document["headline"] in capture.get()
    text = markdown(document)
    assert text.startswith("**faster: B needs")
    assert "| CPU per request, ms |" in text
    files = add_page(document)["files"]
    assert all((ROOT / path).exists() for path in files.values())
    page = (ROOT / files["html"]).read_text()
    assert document["headline"] in page
    assert "A against A" in page


def test_variant_that_does_not_start_is_named_with_its_log(stack):
    commit = commit_with({"backend/config/wsgi.py": "raise RuntimeError('broken on purpose')"})
    before = stack.settings()
    with pytest.raises(LabError) as error:
        _compare(stack, "HEAD", commit)
    assert f"{commit} does not start" in str(error.value)
    assert "broken on purpose" in str(error.value)
    assert stack.settings() == before


SERVER = """
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        sum(i * i for i in range(int(sys.argv[2])))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
OPERATION = {"name": "GET /", "method": "GET", "weight": 1, "expect": 200}


@pytest.fixture
def shop(tmp_path):
    """Return a target whose requests compute as long as its option says."""
    (tmp_path / "server.py").write_text(SERVER)
    operation = OPERATION | {"requests": [{"path": "/"}]}
    mix = {"mix_version": 1, "source": "a test", "operations": [operation]}
    (tmp_path / "shop.mix.json").write_text(json.dumps(mix))
    port, file = free_port(), tmp_path / "shop.toml"
    command = [sys.executable, "server.py", str(port), "{turns}"]
    file.write_text(
        f'url = "http://127.0.0.1:{port}"\n[start]\ncommand = {json.dumps(command)}\n'
        "options = { turns = 100000 }\n"
    )
    return find_target(str(file))


def test_turns_measure_each_variant_by_itself(stack, shop, tmp_path):
    subject = OwnSubject(stack, shop)
    variants = tuple(subject.variant(text) for text in (".", "turns=300000"))
    load = BlockLoad(None, rate=10.0, seconds=4, limit_ms=1000)
    for b_first in (False, True):
        folder = tmp_path / f"block-{b_first}"
        order = Order(swapped=False, b_first=b_first)
        a, b = Trials([subject]).block(variants, load, folder, order)
        # Three times the work; a request costs the server something besides.
        assert 1.8 < b.cpu_ms / a.cpu_ms < 4
        assert a.requests == pytest.approx(b.requests, rel=0.1)
        assert a.failed == b.failed == 0


@pytest.mark.full
def test_variants_of_a_target_are_compared_in_turns(stack, shop):
    subject = OwnSubject(stack, shop)
    variants = [subject.variant(text) for text in (".", "turns=150000")]
    options = CompareOptions(*variants, None, 240, 0.05, block_seconds=5)
    document = run(subject, options, at_once=False)
    assert document["verdict"] == "slower", document["headline"]
    # Half as much work again, beside what the server itself needs.
    assert 1.2 < document["ratios"]["cpu_ms"]["ratio"] < 1.6
    assert document["how"] == "in turns"
    shutil.rmtree(ROOT / document["files"]["folder"])


def test_target_without_variants_is_a_usage_error(shop):
    with pytest.raises(UsageError, match=r"has no \{workers\}"):
        OwnSubject(None, shop).variant("workers=4")
    bare = shop.path.with_name("bare.toml")
    bare.write_text('url = "http://127.0.0.1:1"\n')
    with pytest.raises(UsageError, match=r"has no \[start\]"):
        OwnSubject(None, find_target(str(bare))).variant("workers=4")
