"""`lab bench` on the running stack: measured, stored, missed, and with a full generator."""

import json
import shutil
from dataclasses import replace

import pytest

from lab.host.cpus import choose_cpus
from lab.paths import ROOT
from lab.suites.bench import command, rows, wrk
from lab.suites.bench.rows import Target, Way
from lab.suites.bench.sample import judge

# These tests saturate the machine.
pytestmark = pytest.mark.alone


@pytest.fixture(scope="module")
def benched(lab, stack):
    """Measure and profile one row; yield the output and the stack's previous settings."""
    before = stack.settings()
    asked = ("--only", "revalidation", "--repeat", "2", "--duration", "2s")
    said = lab("bench", *asked, "--profile", "--json")
    yield said, before
    document = said.json
    (ROOT / document["files"]["result"]).unlink()
    for each in document["rows"][0]["profiles"]:
        if each["file"]:
            shutil.rmtree((ROOT / each["file"]).parent)


def test_row_is_measured_and_stored_and_stack_restored(benched, stack):
    said, before = benched
    document = said.json
    assert json.loads((ROOT / document["files"]["result"]).read_text()) == document
    (row,) = document["rows"]
    (figure,) = row["figures"]
    assert figure["outcome"] != "failed", figure["why"]
    assert said.code == (0 if figure["outcome"] == "reached" else 1)
    assert len(figure["values"]) == len(row["pairs"]) == 2
    assert row["pairs"][0]["known"]["bytes"] < 1000 < row["pairs"][0]["built"]["bytes"]
    assert {"wrk", "nginx", "postgres", "django"} <= document["versions"].keys()
    assert document["host"]["load_cpus"]
    assert len(document["cpu_speed"]) == 2
    assert "revalidation known 2/2" in said.err
    assert stack.settings() == before


def test_profile_shows_cpu_time_of_each_variant(benched):
    said, _ = benched
    found = {each["way"]: each for each in said.json["rows"][0]["profiles"]}
    assert list(found) == ["built", "known", "nothing"]
    assert [each["wrong"] for each in found.values()] == ["", "", ""]
    spent = {way: each["cpu_ms"] for way, each in found.items()}
    # `built` queries Postgres for the page; `nothing` queries no service.
    assert spent["built"]["postgres"] > 10 * spent["nothing"]["postgres"]
    assert spent["built"]["backend"] > spent["nothing"]["backend"] > 0
    assert {"gunicorn", "django"} <= found["nothing"]["packages"].keys()
    assert "psycopg" not in found["nothing"]["packages"]
    for each in found.values():
        assert sum(each["packages"].values()) == pytest.approx(100, abs=1)
        assert len(each["hottest"]) == 10
        svg = (ROOT / each["file"]).read_text()
        assert f"({each['samples']:,} samples" in svg


def test_slower_path_fails_check(stack, monkeypatch):
    """The variant that answers 304 builds the page instead."""
    honest = rows.row("revalidation")
    slower = tuple(Way("known", "detail") if way.name == "known" else way for way in honest.ways)
    monkeypatch.setattr(rows, "ROWS", (replace(honest, ways=slower),))
    document = command.run(stack, command.resolve_options(["revalidation"], repeats=1, seconds=1, check=True))
    (ROOT / document["files"]["result"]).unlink()
    (figure,) = document["rows"][0]["figures"]
    assert figure["outcome"] == "missed"
    assert not command.is_reached(document)


def test_full_generator_is_detected(stack, tmp_path):
    """A script that computes fills wrk's thread, and the target is almost idle."""
    script = tmp_path / "slow.lua"
    script.write_text(
        'dofile(os.getenv("BENCH_REPORT"))\n'
        "function request()\n"
        "  local sum = 0\n"
        "  for i = 1, 20000000 do sum = sum + math.sin(i) end\n"
        "  return wrk.format()\n"
        "end\n"
    )
    settings = stack.settings()
    asked = wrk.Load(f"{settings.nginx_status_url}/settings", 1, 2, script=str(script))
    cpus = choose_cpus(settings)
    target = Target("fast", "naive", must_reach=1, floor=1)
    found = wrk.measure(asked, cpus)
    assert found.busy.generator >= 0.9
    if cpus.shared:
        pytest.skip(
            "Target and generator share their CPUs here: nobody can tell whose limit it is."
        )
    assert judge(target, [{"naive": found, "fast": found}], check=False).outcome == "void"
