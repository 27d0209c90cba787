"""`lab profile --after` of an app with a fault in one of six operations: a statement for each row,
or a slow function. The shares of its functions are those of the CPU time that it recorded, or less
by no more than the profile says.
"""

import json
import shutil

import psycopg
import pytest

from load_lab.paths import ROOT
from load_lab.profile.flamegraph import hottest
from tests.support.postgres_server import running_postgres
from tests.support.six_operations.app import SCHEMA
from tests.support.six_targets import write_target

pytestmark = [pytest.mark.alone, pytest.mark.machine(part="apps")]

RAMP = ("--rate", "600", "--duration", "45s", "--no-early-stop")
# Of the samples, below which a function has too few of them to compare.
LEAST_PERCENT = 8


@pytest.fixture(scope="module")
def database():
    with running_postgres(0, "shared_preload_libraries=pg_stat_statements") as server:
        url = f"postgresql://postgres@127.0.0.1:{server.port}/postgres"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION pg_stat_statements")
            connection.execute(SCHEMA)
            connection.execute("VACUUM ANALYZE")
        yield url


@pytest.mark.parametrize(
    ("fault", "operation", "statement", "function"),
    [
        ("statements", "GET /orders/", "SELECT name FROM item WHERE id = $1", None),
        ("function", "GET /report/", None, "with_taxes"),
    ],
)
def test_faulty_operation_is_profiled(
    lab, stack, database, tmp_path, fault, operation, statement, function
):
    path = write_target(tmp_path, fault, database=database)
    ramp = lab("k6", "breakpoint", "--target", str(path), *RAMP, "--json")
    assert ramp.json["outcome"] == "broke", ramp.json["verdict"]
    result = lab("profile", "--after", ramp.json["testid"], "--json")
    assert result.code == 0, result.err
    document = result.json
    print(document["headline"], json.dumps(document["after"]))
    assert document["after"]["operation"] == operation
    assert document["after"]["rate"] == pytest.approx(ramp.json["break_point"]["rate"] / 6, rel=0.1)
    if statement:
        first, second, *_ = document["statements"]
        assert first["statement"] == statement
        assert first["calls_per_request"] == pytest.approx(200, rel=0.05)
        assert first["ms_per_request"] > 3 * second["ms_per_request"]
        assert statement in document["headline"]
    if function:
        assert document["hottest"][0]["function"] == function
        assert function in document["headline"]
    _shares_are_those_of_cpu_time(document, json.loads((tmp_path / "times.json").read_text()))
    explained = lab("explain", ramp.json["testid"], "--json")
    assert explained.json["profile"]["headline"] == document["headline"]
    for each in (ramp.json["files"]["folder"], f"results/{document['testid']}"):
        shutil.rmtree(ROOT / each)


def _shares_are_those_of_cpu_time(document, times):
    """Each within 20 %, or too small by the part that the profile says is no CPU time: with a
    statement for each row, a fifth of the samples is a wait for Postgres on the same CPU.
    """
    every = times.pop("all")
    waiting = 1 - document["cpu_seconds"] * document["samples_per_second"] / document["samples"]
    samples, _, functions = hottest(ROOT / document["files"]["svg"])
    found = {each.function: 100 * each.all_samples / samples for each in functions}
    shares = {name: 100 * seconds / every for name, seconds in times.items()}
    print(samples, waiting, {name: (share, found.get(name)) for name, share in shares.items()})
    large = {name: share for name, share in shares.items() if share >= LEAST_PERCENT}
    assert large
    for name, share in large.items():
        assert 0.8 * share < found[name] / (1 - max(0, waiting)), name
        assert found[name] < 1.2 * share, name
