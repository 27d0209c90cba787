"""Claims: expressions over cells, their verdicts and their notes."""

import pytest

from lab.analysis.result import METRICS
from lab.experiments import files, matrix
from lab.experiments.claims import evaluate, problems
from lab.experiments.store import CellRun
from lab.paths import EXPERIMENTS

WINDOW = {"end": 5, "offered": 0, "due": 0, "achieved": 0, "goodput": 0}
WINDOW |= {"error_ratio": 0, "dropped": 0, "p95_ms": None}
POINT = {"goodput": 1.0, "seconds_into_test": 9.0, "reasons": []}


def cell(name, repeat=1, **figures):
    base = {
        **{"name": name, "repeat": repeat, "state": "measured", "limited_by": "target"},
        "successes": 1,
    }
    windows = [WINDOW | window for window in figures.pop("windows", [])]
    point = figures.pop("break_point", None)
    return base | figures | {"windows": windows, "break_point": point and POINT | point}


def claim(holds, **measures):
    return {"id": "c", "text": "t", "published": None, "measures": measures, "holds": holds}


def only(claims, cells):
    (found,) = evaluate(claims, [CellRun.of(cell) for cell in cells])
    return found


GOODPUT = {"none": "goodput('none')", "redis": "goodput('redis')"}
CELLS = [
    *(cell("none", n, goodput=g, failed=0) for n, g in ((1, 1.0), (2, 3.0), (3, 2.0))),
    cell("redis", goodput=9.0, failed=4, builds={"hotel_detail": 7, "hotel_list": 1}),
    cell("nginx", goodput=50.0, limited_by="generator_cpu", break_point={"offered": 60.5}),
    {"name": "broken", "repeat": 1, "state": "failed", "error": "no"},
]


def test_claim_is_judged_by_median_of_repeats():
    found = only([claim("redis >= 4 * none", **GOODPUT)], CELLS)
    assert found["measured"] == {"none": 2.0, "redis": 9.0}
    assert found["verdict"] == "holds"
    assert found["notes"] == []


def test_claim_with_higher_factor_does_not_hold():
    found = only([claim("redis >= 5 * none", **GOODPUT)], CELLS)
    assert found["verdict"] == "does not hold"


@pytest.mark.parametrize("name", ["broken", "absent"])
def test_unmeasured_cell_has_no_verdict(name):
    found = only([claim("x > 0", x=f"goodput('{name}')")], CELLS)
    assert (found["verdict"], found["measured"]) == ("not measured", {"x": None})


def test_cell_that_held_has_no_break_point():
    assert only([claim("x > 0", x="broke_at('redis')")], CELLS)["verdict"] == "not measured"
    assert only([claim("x > 60", x="broke_at('nginx')")], CELLS)["verdict"] == "holds"


def test_builds_and_answers_are_counted_by_route_and_outcome():
    cells = [cell("c", builds={"hotel_detail": 7}, cache={"nginx": {"HIT": 5, "STALE": 2}})]
    asked = claim(
        "b == 7 and a == 7",
        b="builds('c', 'hotel_detail')",
        a="answers('c', 'nginx', 'HIT', 'STALE')",
    )
    assert only([asked], cells)["verdict"] == "holds"


def test_errors_from_is_rate_of_first_window_over_limit():
    windows = [
        {"offered": offered, "error_ratio": errors}
        for offered, errors in ((5.0, 0.0), (10.0, 0.01), (15.0, 0.02), (20.0, 0.0))
    ]
    asked = claim("x == 15", x="errors_from('c')")
    assert only([asked], [cell("c", windows=windows)])["verdict"] == "holds"
    assert only([asked], [cell("c", windows=windows[:2])])["measured"] == {"x": 0.0}


def test_rate_within_is_best_goodput_before_first_slow_window():
    windows = [
        {"p95_ms": p95, "goodput": goodput}
        for p95, goodput in ((None, 1.0), (3, 10.0), (6, 20.0), (13, 25.0), (5, 30.0))
    ]
    cells = [cell("c", windows=windows), cell("late", windows=[{"p95_ms": 9, "goodput": 4.0}])]
    for asked, found in (
        *(("rate_within('c', 6)", 20.0), ("rate_within('c', 13)", 30.0)),
        ("rate_within('late', 6)", 0.0),
    ):
        assert only([claim("x >= 0", x=asked)], cells)["measured"] == {"x": found}
    closed = [cell("c", windows=[])]
    assert only([claim("x >= 0", x="rate_within('c', 6)")], closed)["verdict"] == "not measured"


def test_metrics_can_be_summed_and_compared():
    cells = [cell("a", failed=1), cell("b", failed=2)]
    asked = claim("sum(s, m) == 5", s="sum(failed('a'), failed('b'))", m="max(failed('a'), 2)")
    assert only([asked], cells)["verdict"] == "holds"
    missing = claim("s == 0", s="sum(failed('a'), failed('gone'))")
    assert only([missing], cells)["verdict"] == "not measured"


def test_websocket_counts_are_metrics():
    found = {"connections": 1000, "messages": 7, "lost": 0, "closed": 1, "delay_p95_ms": 3.5}
    asked = claim(
        "held == 1000 and lost == 0 and late < 4",
        held="connections('c')",
        lost="ws_lost('c')",
        late="ws_delay_p95_ms('c')",
    )
    assert only([asked], [cell("c", websockets=found)])["verdict"] == "holds"
    assert only([asked], [cell("c", websockets=None)])["verdict"] == "not measured"


def test_division_by_zero_has_no_verdict():
    found = only([claim("1 / failed > 2", failed="failed('none')")], CELLS)
    assert found["verdict"] == "not measured"
    assert "can't be judged" in found["notes"][0]


def test_ramp_that_held_is_a_lower_bound():
    figures = {"goodput": 5.0, "limited_by": "none", "outcome": "held"}
    cells = [cell("c", **figures, workload={"profile": "breakpoint"})]
    found = only([claim("x > 0", x="goodput('c')")], cells)
    assert found["notes"] == ["c held to the end of its ramp: its rates are lower bounds"]
    # The `hold` profile has a constant rate and no ramp.
    cells = [cell("c", **figures, workload={"profile": "hold"})]
    assert only([claim("x > 0", x="goodput('c')")], cells)["notes"] == []


def test_layer_sharing_cpu_with_generator_is_reported():
    cells = [cell("c", goodput=5.0, legacy={"layer_cpus_shared_with": "the load generator"})]
    (note,) = only([claim("x > 0", x="goodput('c')")], cells)["notes"]
    assert "c: the layer's Redis shares its CPU with the load generator" in note
    cells = [cell("c", goodput=5.0, legacy={"layer_cpus_shared_with": "nobody"})]
    assert only([claim("x > 0", x="goodput('c')")], cells)["notes"] == []


def test_cell_without_successes_has_no_verdict():
    cells = [cell("a", failed=3, successes=0), cell("b", failed=3, successes=1)]
    found = only([claim("a == b", a="failed('a')", b="failed('b')")], cells)
    assert (found["verdict"], found["notes"]) == ("not measured", ["a gave no successful answer"])
    assert found["measured"] == {"a": 3, "b": 3}


def test_unmeasured_cell_reports_its_reason():
    why = "Python 3.6 is not here"
    cells = [{"name": "old", "repeat": 1, "state": "not measured", "error": why}]
    found = only([claim("x > 0", x="failed('old')", y="failed('gone')")], cells)
    assert found["verdict"] == "not measured"
    assert found["notes"] == [f"old was not measured: {why}", "gone was not measured"]


OF_RESULT = [name for name, metric in METRICS.items() if metric.path == (name,)]
ZEROS = {**dict.fromkeys(OF_RESULT, 0), "websockets": {}}


@pytest.mark.parametrize("path", sorted(EXPERIMENTS.glob("*.toml")), ids=lambda path: path.stem)
def test_project_claims_do_not_hold_without_successes(path):
    experiment = files.parse(path.stem, path.read_text())
    windows = [WINDOW]
    cells = [cell(c.name, **ZEROS, windows=windows) for c in matrix.cells(experiment)]
    found = evaluate(
        [each.model_dump() for each in experiment.claims], [CellRun.of(cell) for cell in cells]
    )
    assert {each["id"] for each in found if each["verdict"] != "not measured"} == set()


def test_generator_limit_is_reported():
    found = only([claim("x > 0", x="goodput('nginx')")], CELLS)
    assert found["notes"] == ["nginx is limited by the generator's CPU: its rates are lower bounds"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (claim("x > 0", x="goodput('absent')"), "no cell absent"),
        (claim("x > 0", x="speed('none')"), "speed"),
        (claim("y > 0", x="goodput('none')"), "y"),
        (claim("x >", x="goodput('none')"), "claim c: "),
        (claim("x > 0", x="goodput('none', 'twice')"), "positional argument"),
        (claim("x > 0", x="builds('none', 'hotle_detail')"), "known: hotel_list, hotel_detail"),
        (claim("x > 0", x="answers('none', 'nginx', 'hit')"), "hit is not known here"),
        (claim("__import__('os')", x="goodput('none')"), "__import__"),
    ],
)
def test_invalid_expression_is_found_before_the_run(wrong, said):
    (problem,) = problems([wrong], {"none"})
    assert said in problem
