"""Result files that were edited by hand: each is one message with exit code 1, or is read."""

import json
import secrets
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from load_lab.errors import LabError
from load_lab.experiments import wording
from load_lab.experiments.claims import evaluate
from load_lab.experiments.report.rows import build
from load_lab.experiments.report.sections import sections
from load_lab.experiments.report.writing import report_document
from load_lab.experiments.run_folder import Store
from load_lab.paths import EXPERIMENTS, project
from load_lab.run import wording as single_run_output
from load_lab.run.page import conditions
from load_lab.run.single_run import parse_single_run
from load_lab.settings import load_settings
from tests.support.samples.cells import cell
from tests.support.samples.make import small

HEADER, CELLS = small()
CLAIM = {"id": "c", "text": "t", "measures": {"a": "rps('naive/none/detail')"}, "holds": "a > 0"}
HEADER = {
    **HEADER,
    "definition": (EXPERIMENTS / "cache-ladder.toml").read_text(),
    "claims": [CLAIM],
    "report": {"compare": "goodput", "rows": ["layer"], "base": {"layer": "none"}},
}
RUN = {
    **cell("naive/none/detail"),
    "schema_version": 1,
    "testid": "breakpoint-1",
    "files": {"folder": "results/x", "summary": "results/x/k6-summary.json"},
    "bounds": HEADER["bounds"],
    "settings": load_settings({}).model_dump(mode="json"),
}
RUN["host"] = HEADER["host"]

# Text that replaces a file.
DAMAGED_FILES = {
    "empty": b"",
    "cut": b'{"schema_version": 1, "run": "x',
    "text": b"results were here",
    "list": b"[1, 2]",
    "number": b"7",
    "null": b"null",
    "latin-1": b'{"schema_version": 1, "run": "f\xfcr"}',
    "nul": b"\0" * 100,
    "nan": b'{"schema_version": NaN}',
    "overflow": b'{"schema_version": 1, "repeats": 1e999}',
    "5000-digits": b'{"schema_version": ' + b"9" * 5000 + b"}",
    "deep": b'{"a":' + b"[" * 100_000,
    "surrogate": b'{"schema_version": 1, "run": "\\ud800"}',
    "without-version": b'{"run": "x"}',
    "future-version": b'{"schema_version": 99}',
    "version-as-list": b'{"schema_version": [1]}',
    "only-version": b'{"schema_version": 1}',
}
# A field of a whole document, and a value that its readers can't use.
DAMAGED_HEADERS = {
    "axes": [{"name": "code"}],
    "plan": [{"name": "x"}],
    "claims": [{"id": "c"}],
    "published": [{"rps": 1}],
    "excluded": [{"cells": "all"}],
    "bounds": {"p95_ms": "x"},
    "host": [],
    "warnings": "none",
    "limits": ["x"],
    "versions": 3,
    "report": {"compare": "speed"},
    "repeats": "often",
    "quick": None,
    "definition": 5,
    "title": {},
}
DAMAGED_CELLS = {
    "axes": {"code": 1},
    "workload": [],
    "legacy": {"stack": []},
    "latency": {"database_ms": "x"},
    "settings": {"LAB_WORKERS": [1]},
    "windows": [{}],
    "cpu": [{"at": 1}],
    "break_point": {"rate": "x"},
    "state": ["measured"],
    "requests": 1e17 * 100,
    "name": None,
    "warm": 3,
}
DAMAGED_RUNS = {
    "files": {"folder": 1},
    "bounds": {"p95_ms": "x"},
    "settings": ["LAB_WORKERS"],
    "host": "here",
    "windows": "none",
    "verdict": {},
    "latency": [],
    "profile": None,
}


@pytest.fixture
def folder():
    """Yield a new folder below results/, named like a run of cache-ladder."""
    path = project().results / f"cache-ladder-29990101-000000-{secrets.token_hex(2)}"
    path.mkdir()
    yield path
    shutil.rmtree(path)


def write_experiment(folder: Path, header=HEADER, cells=CELLS):
    document = json.dumps({"schema_version": 1, **header})
    (folder / "experiment.json").write_text(document)
    for number, entry in enumerate(cells):
        path = folder / f"cells/{number}"
        path.mkdir(parents=True)
        (path / "cell.json").write_text(json.dumps({"schema_version": 1, **entry}))


def commands_fail(run_lab, folder, codes=(1,)):
    """Check `lab show` and `lab report`; `lab list runs` must work whatever is stored."""
    for command in ("show", "report"):
        ending = run_lab(command, folder.name)
        assert any(ending.is_error(code, "") for code in codes), (command, ending)
        assert len(ending.err) < 3000
    listed = run_lab("list", "runs", "--json")
    assert listed.code == 0
    assert folder.name in listed.out


def test_undamaged_files_are_read(run_lab, folder):
    write_experiment(folder)
    assert run_lab("show", folder.name).code == 0
    assert parse_single_run(RUN).result.verdict == CELLS[0]["verdict"]


@pytest.mark.parametrize("content", DAMAGED_FILES.values(), ids=DAMAGED_FILES)
@pytest.mark.parametrize("name", ["experiment.json", "cells/0/cell.json", "result.json"])
def test_damaged_file_is_one_message(run_lab, folder, name, content):
    if name != "result.json":
        write_experiment(folder)
    (folder / name).write_bytes(content)
    commands_fail(run_lab, folder, (1, 2) if b"version" in content else (1,))


@pytest.mark.parametrize("field", DAMAGED_HEADERS)
def test_damaged_header_is_one_message(run_lab, folder, field):
    write_experiment(folder, HEADER | {field: DAMAGED_HEADERS[field]})
    commands_fail(run_lab, folder)


@pytest.mark.parametrize("field", DAMAGED_CELLS)
def test_damaged_cell_is_one_message(run_lab, folder, field):
    write_experiment(folder, cells=[CELLS[0] | {field: DAMAGED_CELLS[field]}])
    commands_fail(run_lab, folder)


@pytest.mark.parametrize("field", DAMAGED_RUNS)
def test_damaged_run_is_one_message(run_lab, folder, field):
    (folder / "result.json").write_text(json.dumps(RUN | {field: DAMAGED_RUNS[field]}))
    commands_fail(run_lab, folder)


@pytest.mark.parametrize("kind", ["bench", "bench-growth", "calibrate", "demo", "overload", "soak"])
@pytest.mark.parametrize("document", [{}, {"files": 1, "rungs": 2}, {"verdict": [], "arms": [1]}])
def test_damaged_suite_is_one_message(run_lab, kind, document):
    path = project().results / f"{kind}-29990101-000000.json"
    if kind == "calibrate":
        path = project().results / f"calibrate-{secrets.token_hex(4)}" / "result.json"
        path.parent.mkdir()
    path.write_text(json.dumps({"schema_version": 1, **document}))
    try:
        ending = run_lab("show", path.stem if kind != "calibrate" else path.parent.name)
    finally:
        path.unlink()
        if kind == "calibrate":
            path.parent.rmdir()
    assert ending.is_error(1, "is damaged"), ending


@pytest.mark.parametrize("field", ["axes", "plan", "claims"])
def test_resume_skips_damaged_run(run_lab, folder, field):
    write_experiment(folder, HEADER | {field: DAMAGED_HEADERS[field]})
    ending = run_lab("run", "cache-ladder", "--resume")
    assert ending.code == 2
    assert f"Skipped: {folder}/experiment.json can't be read" in ending.err


def places(document, path=()):
    """Return the path of every value in a document."""
    items = document.items() if isinstance(document, dict) else enumerate(document)
    inner = [((*path, k), v) for k, v in items]
    below = [p for k, v in inner if isinstance(v, dict | list) for p in places(v, k)]
    return [k for k, _ in inner] + below


def changed(document, path, value):
    """Return a copy of the document with another value at one place."""
    copy = json.loads(json.dumps(document))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return copy


VALUES = st.sampled_from(
    [
        *(None, True, 0, -1, 10**17, -0.5, 1e-300, [], {}, [1], {"x": 1}, [[]]),
        *("", "x", "[/red]", "\n", "x" * 999, "\x1b[31m", "ü", "<script>"),
    ]
)


def render(renderable):
    Console(width=120, file=Path("/dev/null").open("w")).print(renderable)  # noqa: SIM115


@given(st.sampled_from(places(HEADER)), VALUES)
def test_changed_header_is_reported_or_one_message(tmp_path_factory, path, value):
    check_report(tmp_path_factory, changed(HEADER, path, value), CELLS)


@given(st.sampled_from(places(CELLS[:3])), VALUES)
def test_changed_cell_is_reported_or_one_message(tmp_path_factory, path, value):
    check_report(tmp_path_factory, HEADER, changed(CELLS[:3], path, value))


def check_report(tmp_path_factory, header, cells):
    folder = tmp_path_factory.mktemp("run")
    write_experiment(folder, header, [each for each in cells if isinstance(each, dict)])
    store = Store(folder)
    try:
        header, runs = store.header(), store.cells()
    except LabError:
        return
    claims = evaluate(header["claims"], runs)
    sections(build(header, runs, claims))
    render(wording.report(report_document(header, runs, claims, {})))


@given(st.sampled_from(places(RUN)), VALUES)
def test_changed_run_is_shown_or_one_message(path, value):
    try:
        run = parse_single_run(changed(RUN, path, value))
    except (ValueError, LabError):
        return
    conditions(run)
    render(single_run_output.run(run))
