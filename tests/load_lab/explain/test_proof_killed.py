"""A killed `lab explain --prove` of a target leaves its file as it was, and no process."""

import json
import secrets
import shutil
import subprocess
import sys

import pytest

from load_lab.diagnosis import causes
from load_lab.metrics.windows import Bounds
from load_lab.paths import current_state, project
from load_lab.results.bottleneck import Diagnosis
from load_lab.results.result import Result, TargetName
from load_lab.run.single_run import SingleRun
from load_lab.stack.native.supervision import started_in, wait_for
from tests.support.ports import free_port

PROVE = """
import sys
from load_lab.explain import proof
from load_lab.explain.explanation import find_load
from load_lab.options import current_engine
proof._SLICE_SECONDS = 3
proof.prove_cause(current_engine(), find_load(sys.argv[1]))
"""
OPERATION = {"name": "GET /", "method": "GET", "weight": 1, "expect": 200}
SERVER = '["{python}", "-m", "http.server", "--bind", "127.0.0.1", "{port}", "-d", "{{folder}}"]'


@pytest.fixture
def shop(tmp_path):
    """Return the file of a target, one of whose options is a folder."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    operation = OPERATION | {"requests": [{"path": "/"}]}
    mix = {"mix_version": 1, "source": "a test", "operations": [operation]}
    (tmp_path / "shop.mix.json").write_text(json.dumps(mix))
    port, file = free_port(), tmp_path / "shop.toml"
    command = SERVER.format(python=sys.executable, port=port)
    file.write_text(
        f'url = "http://127.0.0.1:{port}"\n[prove]\n"worker slots" = {{ folder = "two" }}\n'
        f'[start]\ncommand = {command}\noptions = {{ folder = "one" }}\n'
        '[reset]\ncommand = ["sh", "-c", "echo again >> resets"]\n'
    )
    return file


@pytest.fixture
def run(shop, stack):
    """Store a run of the target that was limited by its workers; yield its name."""
    folder = project().results / f"breakpoint-20260101-000000-{secrets.token_hex(2)}"
    folder.mkdir()
    url = shop.read_text().split('"')[1]
    result = Result(
        testid=folder.name,
        profile="breakpoint",
        scenario="replay",
        outcome="broke",
        target=TargetName(name=str(shop), url=url),
        bottleneck=Diagnosis(cause=causes.SLOTS.name),
    )
    single_run = SingleRun(result, {}, Bounds(), stack.settings(), {}, None)
    (folder / "result.json").write_text(json.dumps(single_run.document()))
    yield folder.name
    shutil.rmtree(folder)


def test_killed_proof_leaves_the_target_as_it_was(shop, run):
    before = shop.read_text()
    with subprocess.Popen([sys.executable, "-c", PROVE, run]) as proof:
        try:
            wait_for(
                lambda: proof.poll() is not None or _has_folder("two"), seconds=180, what="two"
            )
            assert proof.poll() is None
        finally:
            proof.kill()
    wait_for(lambda: not started_in(current_state()), seconds=60, what="the end of the target")
    assert shop.read_text() == before
    # Before each start: that of the file, and that with the change.
    assert (shop.parent / "resets").read_text().count("again") == 2


def _has_folder(name):
    return any(each.cmdline()[-1:] == [name] for each in started_in(current_state()))


def test_target_that_can_not_be_started_again_is_one_message(lab, shop, run):
    text = shop.read_text()
    shop.write_text(text.replace("//127.0.0.1", "//192.0.2.1", 1))
    result = lab("explain", run, "--prove")
    assert result.is_one_message(2)
    assert "on another host" in result.err
    shop.write_text(text.partition("[start]")[0])
    result = lab("explain", run, "--prove")
    assert result.is_one_message(2)
    assert "has no [start]" in result.err
    shop.unlink()
    result = lab("explain", run, "--prove")
    assert result.is_one_message(2)
    assert f"there is no {shop}, so the lab can't start it again" in result.err
