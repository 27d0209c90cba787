"""Odd experiment files: each is one message with exit code 2, before anything starts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from load_lab.errors import UsageError
from load_lab.experiments import files
from load_lab.experiments.claims import evaluate
from load_lab.experiments.plan import make_plan
from load_lab.experiments.run_folder import CellRun
from load_lab.paths import ROOT
from load_lab.settings import load_settings

SMALL = (ROOT / "tests/support/samples/small.toml").read_text()
CELL = "list/none"


def with_claim(holds, **measures):
    fields = "\n".join(f"{name} = {text!r}" for name, text in measures.items())
    return (
        f'{SMALL}[[claims]]\nid = "c"\ntext = "t"\nholds = {holds!r}\n[claims.measures]\n{fields}'
    )


def replaced(old, new):
    assert old in SMALL
    return SMALL.replace(old, new)


AXES = "\n".join(
    f'[[axis]]\nname = "a{n}"\n'
    + "".join(f'[axis.positions.p{i}]\ntitle = "t"\n' for i in range(9))
    for n in range(9)
)
BAD_FILES = {
    "empty": ("", "schema_version: Field required"),
    "latin-1": ("title = 'f\xfcr'".encode("latin-1"), "is not UTF-8 (byte 10)"),
    "utf-16": (SMALL.encode("utf-16"), "is not UTF-8 (byte 0)"),
    "nul": ("title = 'a\0b'", "is not TOML"),
    "json": ('{"title": 1}', "is not TOML"),
    "cut": (SMALL[:300], "is not TOML"),
    "5000-digits": (replaced("rate = 10,", f"rate = {'9' * 5000},"), "is not TOML: Exceeds"),
    "4000-digits": (replaced("rate = 10,", f"rate = {'9' * 4000},"), "workload.rate"),
    "deep-lists": (f"title = {'[' * 5000}{']' * 5000}", "is nested too deeply"),
    "deep-tables": (f"title = {'{a=' * 5000}1{'}' * 5000}", "is nested too deeply"),
    "repeated-axis": (replaced('name = "layer"', 'name = "load"'), "two axes are named load"),
    "many-cells": (SMALL + AXES, "cells; at most 10,000 are possible"),
    "no-position": (
        replaced("[[exclude]]", '[[axis]]\nname="x"\npositions={}\n[[exclude]]'),
        "pos",
    ),
    "arabic-duration": (replaced('"5m"', '"٥m"'), "workload.duration"),
    "long-duration": (replaced('"5m"', f'"{"9" * 5000}m"'), "workload.duration"),
    "nul-in-route": (replaced("rate = 70", 'rate = 70\nroute = "a\\u0000"'), "tune.0.route"),
    "markup-in-route": (replaced("rate = 70", 'route = "[/red]"'), "tune.0.route"),
    "unknown-profile": (replaced('"breakpoint", scenario = "list"', '"x", scenario = "list"'), "x"),
    "unknown-scenario": (replaced('scenario = "booking"', 'scenario = "x"'), "scenario"),
    "table-as-text": (replaced("settings = { LAB_WORKERS = 2 }", 'settings = "x"'), "settings"),
    "list-as-setting": (replaced("LAB_WORKERS = 2 }", "LAB_WORKERS = [2] }"), "LAB_WORKERS"),
    "date-as-setting": (replaced("LAB_WORKERS = 2 }", "LAB_WORKERS = 2026-01-01 }"), "LAB_WORKERS"),
    "setting-as-5.0": (replaced("LAB_WORKERS = 3", 'LAB_LATENCY_MS = "5.0"'), "LAB_LATENCY_MS=5.0"),
    "unknown-setting": (replaced("LAB_WORKERS = 3", "LAB_WORKER = 3"), "no setting LAB_WORKER"),
    "fixed-setting": (replaced("LAB_WORKERS = 3", "LAB_HTTP_PORT = 3"), "can't change while"),
    "per-5s-text": (f'{SMALL}[[published]]\ncell = "{CELL}"\nper_5s = "x"', "published.0.per_5s"),
    "nan": (f'{SMALL}[[published]]\ncell = "{CELL}"\nrps = nan', "published.0.rps"),
    "infinite": (f'{SMALL}[[published]]\ncell = "{CELL}"\nper_5s = inf', "answers_per_second"),
    "text-as-measure": (with_claim("a == 'x'", a="'x'"), "claim c: 'x' is not a number"),
    "hidden-branch": (
        with_claim("a > 0", a=f'1 if rps("{CELL}") < 2000 else speed("{CELL}")'),
        "claim c: Function 'speed' not defined",
    ),
    "hidden-cell": (with_claim("a > 0", a=f'1 or rps("{CELL}") + rps("x")'), "no cell x"),
    "hidden-name": (with_claim("a < 2000 or b", a=f'rps("{CELL}")'), "'b' is not defined"),
    "list-as-cell": (with_claim("a > 0", a="rps(1)"), "1 is not the name of a cell"),
    "deep-expression": (with_claim(f"{'(' * 900}a{')' * 900}", a="rps('x')"), "claim c: "),
    "long-expression": (with_claim("a > 0", a="1+" * 5000 + "1"), "claims.0.measures.a"),
    "power": (with_claim("a > 0", a="9**9**9"), "claim c: "),
    "import": (with_claim("__import__('os')", a=f'rps("{CELL}")'), "claim c: "),
}


@pytest.mark.parametrize(("content", "message"), BAD_FILES.values(), ids=BAD_FILES)
def test_bad_experiment_is_usage_error(run_lab, tmp_path, content, message):
    path = tmp_path / "odd.toml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    ending = run_lab("run", str(path), "--dry-run")
    assert ending.is_error(2, message), ending


@pytest.mark.parametrize(
    "name", ["absent", "x" * 300, "../x", "a\nb", "\udcff", ".toml", "", "[/]"]
)
def test_unknown_experiment_is_usage_error(run_lab, name):
    assert run_lab("run", name, "--dry-run").is_error(2, "There is no experiment")


EXPRESSIONS = st.recursive(
    st.sampled_from([f'rps("{CELL}")', f'p95_ms("{CELL}")', "0", "1e308", "'x'", "a", "[1]"]),
    lambda part: st.builds(
        "({} {} {})".format,
        part,
        st.sampled_from(["+", "/", "**", "<", "and", "or", "%", "if 0 else", "in"]),
        part,
    ),
    max_leaves=4,
)


@given(EXPRESSIONS, EXPRESSIONS, st.floats(0, 1e18))
def test_checked_claim_can_be_evaluated(measure, holds, value):
    """A claim that passes the check must not end the report of a run of hours."""
    try:
        experiment = files.parse("odd", with_claim(holds, a=measure))
        cells = files.checked_cells("odd", experiment, load_settings({}))
        make_plan("odd", "", experiment, cells, only=[], repeats=None, quick=False)
    except UsageError:
        return
    claims = [claim.model_dump() for claim in experiment.claims]
    measured = {"name": CELL, "state": "measured", "successes": 1, "rps": value, "p95_ms": value}
    (result,) = evaluate(claims, [CellRun.of(measured)])
    assert result["verdict"] in ("holds", "does not hold", "not measured")
    assert not any("can't be evaluated" in note for note in result["notes"])


@given(st.data())
def test_damaged_text_is_parsed_or_usage_error(data):
    start = data.draw(st.integers(0, len(SMALL)))
    end = data.draw(st.integers(start, min(len(SMALL), start + 80)))
    pieces = st.sampled_from(
        ['"', "[", "{", "=", "\n", "nan", "0", "[[axis]]\n", "x = 1\n", "٣", "-"]
    )
    text = SMALL[:start] + "".join(data.draw(st.lists(pieces, max_size=4))) + SMALL[end:]
    try:
        experiment = files.parse("odd", text)
        files.checked_cells("odd", experiment, load_settings({}))
    except UsageError:
        return
    assert experiment.axis
