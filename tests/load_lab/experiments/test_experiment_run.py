"""`lab run` without a stack: order of steps, errors, Ctrl-C and stored cells."""

import json
import shutil
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from load_lab.errors import Interrupted, LabError, UsageError
from load_lab.experiments import cell, files
from load_lab.experiments.cell import Measurement
from load_lab.experiments.matrix import cells
from load_lab.experiments.plan import make_plan
from load_lab.experiments.run_folder import Store, find_store
from load_lab.experiments.runner import header, run_plan
from load_lab.interrupts import interruptible
from load_lab.machine import preflight
from load_lab.metrics.windows import Bounds
from load_lab.paths import ROOT
from load_lab.results.result import Result
from load_lab.settings import load_settings, update_live_settings
from load_lab.targets.reference import cells as hotel

TEXT = (ROOT / "tests/support/samples/small.toml").read_text()
RESULT = Result(rps=1.0, goodput=1.0)


class Bench:
    """Bench that records its steps and raises `errors`."""

    def __init__(self, errors=None):
        self.steps = []
        self._errors = errors or {}

    def _record(self, step, cell=None):
        name = cell.name if cell else self.steps[-1][1]
        self.steps.append((step, name))
        if (name, step) in self._errors:
            raise self._errors[name, step]

    def apply(self, cell):
        self._record("apply", cell)

    def reset(self):
        self._record("reset")

    def verify(self):
        self._record("verify")

    def warm(self, cell, folder):
        self._record("warm", cell)

    def measure(self, cell, folder):
        self._record("measure", cell)
        return Measurement(RESULT, cell.settings)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "t-20260101-000000-abcd")


def plan(**options):
    experiment = files.parse("t", TEXT)
    arguments = {"only": [], "repeats": None, "quick": False} | options
    return make_plan("t", TEXT, experiment, cells(experiment), **arguments)


def write_header(store, new_plan):
    store.write_header(header(new_plan, store, Bounds(), {"engine": "native"}, []))


def test_each_cell_runs_steps_in_order_and_is_stored(store):
    bench = Bench()
    run_plan(plan(only=["list/*"]), store, bench)
    assert [step for step, _ in bench.steps] == ["apply", "reset", "verify", "warm", "measure"] * 3
    assert [cell.name for cell in store.cells()] == ["list/none", "list/redis", "list/nginx"]
    assert all(cell.state == "measured" for cell in store.cells())
    assert store.cells()[1].settings["LAB_REDIS_CACHE"] == "page"


def test_failed_verification_is_stored_and_run_continues(store):
    bench = Bench({("list/redis", "verify"): LabError("the layer is not on")})
    failures = run_plan(plan(), store, bench)
    assert failures == ["  list/redis, repeat 1: the layer is not on"]
    states = {cell.name: cell.state for cell in store.cells()}
    assert states.pop("list/redis") == "failed"
    assert set(states.values()) == {"measured"}


def test_resume_measures_only_missing_or_failed_cells(store):
    run_plan(plan(), store, Bench({("list/redis", "warm"): LabError("no")}))
    second_bench = Bench()
    run_plan(plan(), store, second_bench)
    assert {name for _, name in second_bench.steps} == {"list/redis"}
    assert {cell.state for cell in store.cells()} == {"measured"}


OLD = """
[axis.positions.old]
title = "old"
legacy = { stack = "channels-2016", arm = "gunicorn" }
"""


def test_cells_of_unavailable_old_stack_are_skipped_without_failure(store):
    experiment = files.parse("t", TEXT.replace("[[exclude]]", OLD + "[[exclude]]", 1))
    options = {"only": ["list/none", "list/old"], "repeats": None, "quick": False}
    new_plan = make_plan("t", TEXT, experiment, cells(experiment), **options)
    bench = Bench()
    unavailable = {"channels-2016": "Python 3.6 is not here"}
    assert run_plan(new_plan, store, bench, unavailable) == []
    results = {cell.name: (cell.state, cell.error) for cell in store.cells()}
    assert results == {
        "list/none": ("measured", None),
        "list/old": ("not measured", "Python 3.6 is not here"),
    }
    assert {name for _, name in bench.steps} == {"list/none"}
    second_bench = Bench()
    run_plan(new_plan, store, second_bench)
    assert {name for _, name in second_bench.steps} == {"list/old"}
    assert {cell.state for cell in store.cells()} == {"measured"}


@pytest.mark.parametrize("values", [{}, {"LAB_REDIS_CACHE": "page"}, {"LAB_LATENCY_MS": "100"}])
def test_cell_is_verified_without_latency_and_then_emptied_again(monkeypatch, values):
    events, base = list[str](), load_settings({})
    engine = SimpleNamespace(
        token=str, empty_caches=lambda to: nullcontext(events.append(_cache_and_latency(to)))
    )
    monkeypatch.setattr(
        hotel,
        "verify",
        lambda target: events.append(f"verify {_cache_and_latency(target.settings)}"),
    )
    monkeypatch.setattr(hotel.latency, "verify", lambda *_: events.append("delays"))
    settings = update_live_settings(base, values)
    bench = cell.StackBench(engine, base, Bounds(), _dirty=False)
    bench.apply(SimpleNamespace(settings=values, reset="nothing"))
    bench.reset()
    bench.verify()
    cache = settings.LAB_REDIS_CACHE
    assert events == [f"{cache} 0", f"verify {cache} 0", _cache_and_latency(settings), "delays"]


def _cache_and_latency(settings):
    return f"{settings.LAB_REDIS_CACHE} {settings.LAB_LATENCY_MS}"


def test_ctrl_c_preserves_measured_cells(store):
    bench = Bench({("list/redis", "measure"): KeyboardInterrupt()})
    with pytest.raises(Interrupted), interruptible():
        run_plan(plan(), store, bench)
    assert [cell.name for cell in store.cells()] == ["list/none"]


def test_three_consecutive_failures_end_the_run(store):
    names = ("list/none", "list/redis", "list/nginx")
    bench = Bench({(name, "apply"): LabError("stack is gone") for name in names})
    with pytest.raises(LabError, match="3 cells in a row failed"):
        run_plan(plan(), store, bench)
    assert len(store.cells()) == 3


def test_too_little_disk_stops_run_before_next_cell(store, monkeypatch):
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(preflight.shutil, "disk_usage", lambda _: usage._replace(free=10))
    with pytest.raises(LabError, match="Too little disk"):
        run_plan(plan(), store, Bench())
    assert store.cells() == []


def test_each_repeat_has_separate_folder(store):
    run_plan(plan(only=["list/none"], repeats=2), store, Bench())
    assert [cell.repeat for cell in store.cells()] == [1, 2]


def test_only_option_takes_patterns_and_rejects_unmatched_ones():
    assert [cell.name for cell, _ in plan(only=["redis", "booking/*"]).todo] == [
        *("list/redis", "booking/none"),
    ]
    with pytest.raises(UsageError, match="--only memcached fits no cell"):
        plan(only=["memcached"])


def test_result_of_unknown_version_is_rejected_unchanged(store):
    write_header(store, plan())
    document = json.loads(store.header_file.read_text()) | {"schema_version": 99}
    store.header_file.write_text(json.dumps(document))
    with pytest.raises(UsageError, match="schema version 99; this lab reads 1"):
        store.header()
    assert json.loads(store.header_file.read_text()) == document


def test_incomplete_result_is_one_message(store):
    write_header(store, plan())
    document = json.loads(store.header_file.read_text())
    del document["claims"]
    store.header_file.write_text(json.dumps(document))
    with pytest.raises(LabError, match="it lacks claims"):
        store.header()


def test_newest_run_is_found_by_time_and_full_name(monkeypatch, tmp_path):
    monkeypatch.setenv("LAB_PROJECT", str(tmp_path))
    older, newer, other = (
        Store(tmp_path / "results" / f"{name}-abcd")
        for name in ("t-20260101-000000", "t-20260102-000000", "t-2-20270101-000000")
    )
    for run in (newer, other, older):
        write_header(run, plan())
    assert find_store("t") == newer
    assert find_store("t-2") == other
    assert find_store(older.run) == older


def test_damaged_result_is_one_message(store):
    write_header(store, plan())
    store.header_file.write_text("{")
    with pytest.raises(LabError, match="can't be read as a result"):
        store.header()


def test_missing_result_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("LAB_PROJECT", str(tmp_path))
    with pytest.raises(UsageError, match="no result of cache-ladder"):
        find_store("cache-ladder")


def test_claim_about_unknown_cell_is_rejected_before_the_run():
    text = (
        TEXT
        + """
[[claims]]
id = "c"
text = "t"
measures = { x = "rps('list/memcached')" }
holds = "x > 1"
"""
    )
    experiment = files.parse("t", text)
    with pytest.raises(UsageError, match="claim c: no cell list/memcached"):
        make_plan("t", text, experiment, cells(experiment), only=[], repeats=None, quick=False)
