"""`lab soak` of an app with a database, as a user runs it."""

import json

import pytest

from load_lab.paths import ROOT, current_state
from load_lab.stack.native.supervision import started_in
from tests.support.shop_with_database.target import shop_with_server

pytestmark = [pytest.mark.alone, pytest.mark.full]


@pytest.fixture
def soak(lab, stack, tmp_path):
    def run(*lines, env=""):
        path = shop_with_server(tmp_path).path
        path.write_text("\n".join((*lines, path.read_text(), env)))
        result = lab("soak", "--target", str(path), "--duration", "60s", "--rate", "15", "--json")
        assert result.out, result.err
        assert not started_in(current_state())
        document = json.loads((ROOT / result.json["files"]["result"]).read_text())
        failed = {each["what"] for each in document["figures"] if not each["kept"]}
        assert result.code == bool(failed)
        return document, failed

    return run


def test_app_that_keeps_nothing_passes(soak):
    document, failed = soak('postgres = "postgresql://postgres@127.0.0.1:{port2}/postgres"')
    assert not failed
    assert document["unseen"] == []
    looks = document["looks"]
    assert len(looks) > 40
    # Gunicorn's main process and its worker, which has a connection.
    assert {len(look["workers"]) for look in looks} == {2}
    assert all(look["connections"] > 0 and look["threads"] >= 2 for look in looks[5:])
    assert "growth of database connections" in {each["what"] for each in document["figures"]}


def test_each_leak_of_an_app_is_named(soak):
    """Its connections are seen as sockets: the file names no Postgres."""
    document, failed = soak(env="LEAK = 12\n")
    assert failed == {
        *("growth of process 2, MiB", "growth of database connections"),
        *("growth of open files", "growth of threads"),
    }
    assert document["looks"][-1]["connections"] > 50
