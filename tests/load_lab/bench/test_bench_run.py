"""`lab bench` on the running stack: measured, stored, missed, and with a full generator."""

import json
import re
import shutil
from dataclasses import replace

import pytest

from load_lab.bench import benchmark, rows, wrk
from load_lab.bench.rows import Target, Variant
from load_lab.bench.sample import evaluate
from load_lab.errors import Interrupted
from load_lab.machine.cpus import choose_cpus
from load_lab.paths import ROOT
from load_lab.results.store import find_run

# These tests saturate the machine.
pytestmark = pytest.mark.alone


@pytest.fixture(scope="module")
def bench_run(lab, stack):
    """Measure and profile one row; yield the output and the stack's previous settings."""
    before = stack.settings()
    options = ("--only", "revalidation", "--repeat", "2", "--duration", "2s")
    result = lab("bench", *options, "--profile", "--json")
    yield result, before
    document = result.json
    (ROOT / document["files"]["result"]).unlink()
    for profile in document["rows"][0]["profiles"]:
        if profile["file"]:
            shutil.rmtree((ROOT / profile["file"]).parent)


def test_row_is_measured_and_stored_and_stack_restored(bench_run, stack):
    result, before = bench_run
    document = result.json
    assert json.loads((ROOT / document["files"]["result"]).read_text()) == document
    (row,) = document["rows"]
    (verdict,) = row["figures"]
    assert verdict["outcome"] != "failed", verdict["why"]
    assert result.code == (0 if verdict["outcome"] == "reached" else 1)
    assert len(verdict["values"]) == len(row["pairs"]) == 2
    assert row["pairs"][0]["known"]["bytes"] < 1000 < row["pairs"][0]["built"]["bytes"]
    assert {"wrk", "nginx", "postgres", "django"} <= document["versions"].keys()
    assert document["host"]["load_cpus"]
    assert len(document["cpu_speed"]) == 2
    assert "revalidation known 2/2" in result.err
    assert stack.settings() == before


def test_profile_shows_cpu_time_of_each_variant(bench_run):
    result, _ = bench_run
    profiles = {profile["way"]: profile for profile in result.json["rows"][0]["profiles"]}
    assert list(profiles) == ["built", "known", "nothing"]
    assert [profile["wrong"] for profile in profiles.values()] == ["", "", ""]
    cpu_ms = {variant: profile["cpu_ms"] for variant, profile in profiles.items()}
    # `built` queries Postgres for the page; `nothing` queries no service.
    assert cpu_ms["built"]["postgres"] > 10 * cpu_ms["nothing"]["postgres"]
    assert cpu_ms["built"]["backend"] > cpu_ms["nothing"]["backend"] > 0
    assert {"gunicorn", "django"} <= profiles["nothing"]["packages"].keys()
    assert "psycopg" not in profiles["nothing"]["packages"]
    for profile in profiles.values():
        assert sum(profile["packages"].values()) == pytest.approx(100, abs=1)
        assert len(profile["hottest"]) == 10
        svg = (ROOT / profile["file"]).read_text()
        assert f"({profile['samples']:,} samples" in svg


# Slow: the exit code of a missed target is tested without a load in test_bench.py.
@pytest.mark.full
def test_slower_path_fails_check(stack, monkeypatch):
    """The variant that answers 304 builds the page instead."""
    original = rows.row("revalidation")
    variants = tuple(
        Variant("known", "detail") if variant.name == "known" else variant
        for variant in original.variants
    )
    monkeypatch.setattr(rows, "ROWS", (replace(original, variants=variants),))
    document = benchmark.run(
        stack, benchmark.resolve_options(["revalidation"], repeats=1, seconds=1, check=True)
    )
    (ROOT / document["files"]["result"]).unlink()
    (verdict,) = document["rows"][0]["figures"]
    assert verdict["outcome"] == "missed"
    assert not benchmark.is_reached(document)


def test_rows_before_an_interrupt_are_stored(stack, monkeypatch):
    """Ctrl-C in the second row."""
    first = {"row": "revalidation", "path": "", "figures": [], "pairs": [], "profiles": []}

    def measure_rows(_bench, _options):
        yield first
        raise KeyboardInterrupt

    monkeypatch.setattr(benchmark, "_measure_rows", measure_rows)
    options = benchmark.resolve_options(
        ["revalidation", "booking"], repeats=1, seconds=1, check=True
    )
    with pytest.raises(Interrupted, match=r"Not measured: booking$") as error:
        benchmark.run(stack, options)
    path = ROOT / re.search(r"results/\S+\.json", str(error.value))[0]
    assert json.loads(path.read_text())["rows"] == [first]
    assert find_run(path.stem).kind == "bench"
    path.unlink()


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
    load = wrk.Load(f"{settings.nginx_status_url}/settings", 1, 2, script=str(script))
    cpus = choose_cpus(settings)
    target = Target("fast", "naive", must_reach=1, floor=1)
    sample = wrk.measure(load, cpus)
    assert sample.busy.generator >= 0.9
    if cpus.shared:
        pytest.skip(
            "Target and generator share their CPUs here: nobody can tell whose limit it is."
        )
    assert evaluate(target, [{"naive": sample, "fast": sample}], check=False).outcome == "void"
