"""`lab compare --target`: two instances of an app at once, with a database each or one server."""

import json
import sys
from contextlib import ExitStack

import psycopg
import pytest
from support.commits import git
from support.postgres_server import running_postgres
from support.shop_with_database import target as shop_with_database

from load_lab.compare.blocks import CompareOptions
from load_lab.compare.comparison import run
from load_lab.compare.cost import BlockLoad, Order
from load_lab.compare.trials import Trials
from load_lab.errors import LabError, UsageError
from load_lab.paths import compared_state, current_state
from load_lab.stack import http
from load_lab.stack.native.supervision import started_in
from load_lab.targets.declared import find_target
from load_lab.targets.own import OwnSubject


@pytest.fixture
def shop_with_server(tmp_path):
    return shop_with_database.shop_with_server(tmp_path)


@pytest.fixture(scope="module")
def shared_server():
    settings = "shared_preload_libraries=pg_stat_statements"
    with running_postgres(0, settings) as server:
        url = f"postgresql://postgres@127.0.0.1:{server.port}/postgres"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION pg_stat_statements")
            for name in ("shop", "shop_2"):
                connection.execute(f"CREATE DATABASE {name}")
            for name in ("shop", "shop_2"):
                own = url.rpartition("/")[0] + f"/{name}"
                with psycopg.connect(own, autocommit=True) as each:
                    each.execute("CREATE EXTENSION pg_stat_statements")
        yield server


@pytest.fixture
def shop_on_shared_server(tmp_path, shared_server):
    return shop_with_database.shop_on_server(tmp_path, shared_server.port)


def _block(subject, texts, folder, order=None):
    """Return both sides of one block, both at once."""
    variants = tuple(subject.variant(text) for text in texts)
    load = BlockLoad(None, rate=20.0, seconds=4, limit_ms=1000)
    with subject.instances(variants, at_once=True) as instances:
        trials = Trials(instances)
        return trials.block(variants, load, folder / "block", order or Order.of_block(1))


@pytest.mark.parametrize("number", [1, pytest.param(2, marks=pytest.mark.full)])
def test_two_instances_of_an_app_run_at_once_each_with_its_database(
    stack, shop_with_server, tmp_path, number
):
    subject = OwnSubject(stack, shop_with_server)
    assert not subject.why_in_turns
    a, b = _block(subject, (".", "TURNS=20000"), tmp_path, Order.of_block(number))
    assert b.cpu_ms > 2 * a.cpu_ms
    assert a.requests == pytest.approx(b.requests, rel=0.15)
    assert a.failed == b.failed == 0
    assert not a.shared
    assert not started_in(current_state())
    assert not started_in(compared_state(2))


@pytest.mark.full
def test_statements_on_a_shared_server_are_split(stack, shop_on_shared_server, tmp_path):
    subject = OwnSubject(stack, shop_on_shared_server)
    a, b = _block(subject, (".", "STATEMENTS=2"), tmp_path)
    assert a.shared == b.shared
    assert a.shared["postgres"] > 0
    assert "postgres" not in a.services
    assert 1.6 < b.statements_ms / a.statements_ms < 2.4


@pytest.mark.full
def test_statements_of_one_database_are_not_split(stack, shop_on_shared_server, tmp_path):
    path = shop_on_shared_server.path
    path.write_text(path.read_text().replace("{database}", "shop"))
    a, b = _block(OwnSubject(stack, find_target(str(path))), (".", "."), tmp_path)
    assert a.shared["postgres"] > 0
    assert a.statements_ms is b.statements_ms is None


@pytest.mark.full
def test_code_of_one_commit_runs_in_both_instances(stack, shop_with_server, tmp_path):
    commit = git("rev-parse", "HEAD")
    subject = OwnSubject(stack, shop_with_server)
    a, b = subject.variant(commit), subject.variant(commit)
    with subject.instances((a, b), at_once=True) as (first, second), ExitStack() as running:
        for each, variant in ((first, a), (second, b)):
            running.enter_context(each.running(variant))
        assert len([line for line in git("worktree", "list").splitlines() if commit in line]) == 2


def test_variants_that_answer_differently_are_refused(stack, shop_with_server):
    subject = OwnSubject(stack, shop_with_server)
    variants = [subject.variant(text) for text in (".", "EXTRA=200")]
    options = CompareOptions(*variants, None, 240, 0.05, block_seconds=5)
    with pytest.raises(LabError) as error:
        run(subject, options, at_once=True)
    assert "GET /: A answers 200 and 39 bytes, B 200 and 239 bytes" in str(error.value)
    assert not started_in(current_state())


def test_port_that_an_app_ignores_is_named(stack, shop_with_server):
    path = shop_with_server.path
    port = str(http.address(shop_with_server.url)[1])
    # The second one ends: its port is taken.
    command = json.dumps([sys.executable, "-m", "http.server", "--bind", "127.0.0.1", port])
    start = f'command = {command}\nprepare = ["true", "{{port}}"]'
    lines = path.read_text().splitlines()
    changed = [start if line.startswith("command") else line for line in lines]
    path.write_text("\n".join(changed))
    subject = OwnSubject(stack, find_target(str(path)))
    with pytest.raises(LabError, match=r"Does its command listen at that port\?"):
        _block(subject, (".", "."), path.parent)


@pytest.mark.parametrize(
    ("removed", "method", "message"),
    [
        ("{port}", "GET", r"has no \{port\}. Write it where"),
        ("{database}", "POST", "both variants would write to one database"),
    ],
)
def test_target_whose_variants_can_not_run_at_once(
    shop_on_shared_server, stack, removed, method, message
):
    path = shop_on_shared_server.path
    path.write_text(path.read_text().replace(removed, "shop" if "data" in removed else "8000"))
    mix = path.with_name("shop.mix.json")
    mix.write_text(mix.read_text().replace('"method": "GET"', f'"method": "{method}"'))
    subject = OwnSubject(stack, find_target(str(path)))
    with pytest.raises(UsageError, match=message):
        _block(subject, (".", "."), path.parent)
