"""`lab explain --prove` on the real stack, where a change ends what it measures."""

from contextlib import ExitStack

import psycopg
import pytest

from load_lab.diagnosis import causes
from load_lab.explain import proof
from load_lab.explain.explanation import StoredLoad
from load_lab.results.bottleneck import Candidate, Diagnosis
from load_lab.results.result import Result, TargetName

_SETTINGS = (
    *("LAB_SERVER=gunicorn-gthread", "LAB_WORKERS=2", "LAB_THREADS=8", "LAB_WORKBENCH=on"),
    "LAB_DB_MAX_CONNECTIONS=40",
)
# Left for 16 threads.
_FREE = 6
_RESERVED = 3
pytestmark = [pytest.mark.alone, pytest.mark.settings(*_SETTINGS)]


def test_restart_that_frees_connections_of_others_can_not_verify(stack, tmp_path, monkeypatch):
    monkeypatch.setattr(proof, "_SLICE_SECONDS", 4)
    before = stack.settings()
    name = causes.MAX_CONNECTIONS.name
    found = Diagnosis(cause=name, candidates=[Candidate(name=name, share=1.0)])
    target = TargetName(name="hotel", url=before.target_url)
    result = Result(
        scenario="workbench", route="pg_sleep", goodput=6.0, target=target, bottleneck=found
    )
    with ExitStack() as held:
        others = _hold_connections(stack, held)
        load = StoredLoad("a test", result, before, tmp_path)
        document = proof.prove_cause(stack, load)
        assert all(_is_closed(each) for each in others)
    assert not document["proven"]
    assert document["gone"]
    for words in (f"can't be verified: {name}", "It restarts Postgres", "pg_stat_activity"):
        assert words in document["headline"]
    assert stack.settings() == before


def _hold_connections(stack, held):
    count = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
    free = 40 - _RESERVED - int(stack.sql("postgres", count)[0])
    return [held.enter_context(stack.connect_postgres()) for _ in range(free - _FREE)]


def _is_closed(connection):
    try:
        connection.execute("SELECT 1")
    except psycopg.OperationalError:
        return True
    return False
