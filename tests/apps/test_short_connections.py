"""`lab compare --target` of an app that connects to Postgres for each request: A against A.

Postgres must count in every block of both, or the result must say that it can't be seen.
"""

import json
import shutil
import sys

import pytest

from load_lab.compare.blocks import CompareOptions
from load_lab.compare.comparison import MIN_BUDGET_SECONDS, run
from load_lab.paths import ROOT
from load_lab.targets.declared import find_target
from load_lab.targets.own import OwnSubject
from tests.support.ports import free_port
from tests.support.postgres_server import running_postgres

pytestmark = [pytest.mark.alone, pytest.mark.machine(part="apps")]

PROJECT = ROOT / "tests/support/short_django"
SESSIONS = 5


@pytest.fixture(scope="module")
def postgres():
    with running_postgres() as server:
        yield server


def target(folder, database):
    """Return the project as a target that names neither its database nor its manage.py."""
    path, port = folder / "shop.toml", free_port()
    operation = {"name": "GET /items/", "method": "GET", "weight": 1, "expect": 200}
    operation |= {"requests": [{"path": "/items/"}]}
    mix = {"mix_version": 1, "source": "a test", "operations": [operation]}
    (folder / "shop.mix.json").write_text(json.dumps(mix))
    command = [sys.executable, "-m", "gunicorn", "--workers", "{workers}"]
    command += ["--bind", f"127.0.0.1:{port}", "manage:application"]
    path.write_text(
        f'url = "http://127.0.0.1:{port}"\n[start]\nfolder = "{PROJECT}"\n'
        f"command = {json.dumps(command)}\noptions = {{ workers = 1 }}\n"
        f"env = {{ SHOP_DATABASE = '{json.dumps(database)}' }}\n"
    )
    return find_target(str(path))


def compare(stack, app, b):
    subject = OwnSubject(stack, app)
    variants = [subject.variant(text) for text in (".", b)]
    options = CompareOptions(*variants, None, MIN_BUDGET_SECONDS, 0.05, block_seconds=5)
    document = run(subject, options, at_once=False)
    shutil.rmtree(ROOT / document["files"]["folder"])
    return document


@pytest.mark.parametrize("host", ["127.0.0.1", ""], ids=["tcp", "unix"])
@pytest.mark.parametrize("_session", range(SESSIONS))
def test_postgres_counts_in_every_block_of_both(stack, postgres, tmp_path, host, _session):
    app = target(tmp_path, postgres.settings(host))
    document = compare(stack, app, ".")
    print(document["headline"], json.dumps([b["a"]["services"] for b in document["blocks"]]))
    sides = [block[side] for block in document["blocks"] for side in "ab"]
    assert len(sides) >= 4
    assert all(side["services"]["postgres"] > 0 for side in sides)
    assert document["services"] == {"counted": ["postgres", "target"], "not_counted": []}
    assert document["unseen"] == []
    # Without Postgres in one of both, it was 2.1.
    assert all(0.7 < block["ratio"] < 1.4 for block in document["blocks"])


def test_other_options_do_not_hide_postgres(stack, postgres, tmp_path):
    app = target(tmp_path, postgres.settings("127.0.0.1"))
    document = compare(stack, app, "workers=2")
    assert document["services"] == {"counted": ["postgres", "target"], "not_counted": []}


def test_database_that_is_not_seen_is_asked_for(stack, tmp_path):
    app = target(tmp_path, {"ENGINE": "django.db.backends.dummy"})
    document = compare(stack, app, ".")
    (said,) = document["unseen"]
    assert f"Name it in {app.path}: postgres = " in said
