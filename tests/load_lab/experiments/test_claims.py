"""Claims: expressions over cells, their verdicts and their notes."""

import pytest

from load_lab.experiments import files, matrix
from load_lab.experiments.claims import deciding_cells, evaluate, problems
from load_lab.experiments.run_folder import CellRun
from load_lab.paths import EXPERIMENTS
from load_lab.results.result import METRICS

WINDOW = {"end": 5, "offered": 0, "due": 0, "achieved": 0, "goodput": 0}
WINDOW |= {"error_ratio": 0, "dropped": 0, "p95_ms": None}
POINT = {"goodput": 1.0, "seconds_into_test": 9.0, "reasons": []}


def cell(name, repeat=1, **metrics):
    base = {
        **{"name": name, "repeat": repeat, "state": "measured", "limited_by": "target"},
        "successes": 1,
    }
    windows = [WINDOW | window for window in metrics.pop("windows", [])]
    point = metrics.pop("break_point", None)
    return base | metrics | {"windows": windows, "break_point": point and _point(point)}


def _point(changes):
    return {"rate": changes.get("offered")} | POINT | changes


def claim(holds, **measures):
    return {"id": "c", "text": "t", "published": None, "measures": measures, "holds": holds}


def evaluate_one(claims, cells):
    (verdict,) = evaluate(claims, [CellRun.of(cell) for cell in cells])
    return verdict


GOODPUT = {"none": "goodput('none')", "redis": "goodput('redis')"}
CELLS = [
    *(cell("none", n, goodput=g, failed=0) for n, g in ((1, 1.0), (2, 3.0), (3, 2.0))),
    cell("redis", goodput=9.0, failed=4, builds={"hotel_detail": 7, "hotel_list": 1}),
    cell("nginx", goodput=50.0, limited_by="generator_cpu", break_point={"offered": 60.5}),
    {"name": "broken", "repeat": 1, "state": "failed", "error": "no"},
]


def test_claim_is_judged_by_median_of_repeats():
    result = evaluate_one([claim("redis >= 3 * none", **GOODPUT)], CELLS)
    assert result["measured"] == {"none": 2.0, "redis": 9.0}
    assert result["intervals"] == {"none": (1.0, 3.0), "redis": (9.0, 9.0)}
    assert result["verdict"] == "holds"
    assert result["notes"] == []


def test_claim_with_higher_factor_does_not_hold():
    result = evaluate_one([claim("redis >= 10 * none", **GOODPUT)], CELLS)
    assert result["verdict"] == "does not hold"


@pytest.mark.parametrize("factor", [4, 5])
def test_claim_on_which_repeats_disagree_is_not_decided(factor):
    result = evaluate_one([claim(f"redis >= {factor} * none", **GOODPUT)], CELLS)
    assert result["verdict"] == "not decided"
    assert "of the draws from the repeats" in result["notes"][0]


def test_single_reading_is_labelled():
    single = evaluate_one([claim("x > 0", x="goodput('redis')")], CELLS)
    assert (single["verdict"], single["basis"], single["intervals"]) == ("holds", "one repeat", {})
    assert evaluate_one([claim("x > 0", x="goodput('none')")], CELLS)["basis"] == ""


def test_cells_that_decide_claims_are_known():
    assert deciding_cells([claim("a > b", a="rps('x/y')", b="failed('z')")]) == {"x/y", "z"}


@pytest.mark.parametrize("name", ["broken", "absent"])
def test_unmeasured_cell_has_no_verdict(name):
    result = evaluate_one([claim("x > 0", x=f"goodput('{name}')")], CELLS)
    assert (result["verdict"], result["measured"]) == ("not measured", {"x": None})


def test_cell_that_held_has_no_break_point():
    assert evaluate_one([claim("x > 0", x="broke_at('redis')")], CELLS)["verdict"] == "not measured"
    assert evaluate_one([claim("x > 60", x="broke_at('nginx')")], CELLS)["verdict"] == "holds"


def test_builds_and_answers_are_counted_by_route_and_outcome():
    cells = [cell("c", builds={"hotel_detail": 7}, cache={"nginx": {"HIT": 5, "STALE": 2}})]
    counts = claim(
        "b == 7 and a == 7",
        b="builds('c', 'hotel_detail')",
        a="answers('c', 'nginx', 'HIT', 'STALE')",
    )
    assert evaluate_one([counts], cells)["verdict"] == "holds"


def test_setting_is_the_one_that_the_cell_ran_with():
    cells = [cell("c", settings={"LAB_DATA_HOTELS": "20"}), cell("older")]
    assert (
        evaluate_one([claim("n == 20", n="setting('c', 'LAB_DATA_HOTELS')")], cells)["verdict"]
        == "holds"
    )
    older = evaluate_one([claim("n == 20", n="setting('older', 'LAB_DATA_HOTELS')")], cells)
    assert older["verdict"] == "not measured"


def test_errors_from_is_rate_of_first_window_over_limit():
    windows = [
        {"offered": offered, "error_ratio": errors}
        for offered, errors in ((5.0, 0.0), (10.0, 0.01), (15.0, 0.02), (20.0, 0.0))
    ]
    counts = claim("x == 15", x="errors_from('c')")
    assert evaluate_one([counts], [cell("c", windows=windows)])["verdict"] == "holds"
    assert evaluate_one([counts], [cell("c", windows=windows[:2])])["measured"] == {"x": 0.0}


def test_rate_within_is_best_goodput_before_first_slow_window():
    windows = [
        {"p95_ms": p95, "goodput": goodput}
        for p95, goodput in ((None, 1.0), (3, 10.0), (6, 20.0), (13, 25.0), (5, 30.0))
    ]
    cells = [cell("c", windows=windows), cell("late", windows=[{"p95_ms": 9, "goodput": 4.0}])]
    for expression, value in (
        *(("rate_within('c', 6)", 20.0), ("rate_within('c', 13)", 30.0)),
        ("rate_within('late', 6)", 0.0),
    ):
        assert evaluate_one([claim("x >= 0", x=expression)], cells)["measured"] == {"x": value}
    closed = [cell("c", windows=[])]
    assert (
        evaluate_one([claim("x >= 0", x="rate_within('c', 6)")], closed)["verdict"]
        == "not measured"
    )


def test_metrics_can_be_summed_and_compared():
    cells = [cell("a", failed=1), cell("b", failed=2)]
    total = claim("sum(s, m) == 5", s="sum(failed('a'), failed('b'))", m="max(failed('a'), 2)")
    assert evaluate_one([total], cells)["verdict"] == "holds"
    missing = claim("s == 0", s="sum(failed('a'), failed('gone'))")
    assert evaluate_one([missing], cells)["verdict"] == "not measured"


def test_websocket_counts_are_metrics():
    counts = {"connections": 1000, "messages": 7, "lost": 0, "closed": 1, "delay_p95_ms": 3.5}
    messages = claim(
        "held == 1000 and lost == 0 and late < 4",
        held="connections('c')",
        lost="ws_lost('c')",
        late="ws_delay_p95_ms('c')",
    )
    assert evaluate_one([messages], [cell("c", websockets=counts)])["verdict"] == "holds"
    assert evaluate_one([messages], [cell("c", websockets=None)])["verdict"] == "not measured"


def test_division_by_zero_has_no_verdict():
    result = evaluate_one([claim("1 / failed > 2", failed="failed('none')")], CELLS)
    assert result["verdict"] == "not measured"
    assert "can't be judged" in result["notes"][0]


def test_ramp_that_held_is_a_lower_bound():
    metrics = {"goodput": 5.0, "limited_by": "none", "outcome": "held"}
    cells = [cell("c", **metrics, workload={"profile": "breakpoint"})]
    result = evaluate_one([claim("x > 0", x="goodput('c')")], cells)
    assert result["notes"] == ["c is limited by the end of the load: its rates are lower bounds"]
    # The `hold` profile has a constant rate and no ramp.
    cells = [cell("c", **metrics, workload={"profile": "hold"})]
    assert evaluate_one([claim("x > 0", x="goodput('c')")], cells)["notes"] == []


BOUNDED = {"limited_by": "generator_cpu"}
SEARCHED = {"low": 115.0, "high": None, "confirmed": False}


@pytest.mark.parametrize(
    ("holds", "verdict"),
    [
        # At least 120: more would not change it.
        ("fast >= 100", "holds"),
        ("fast > 2 * slow", "holds"),
        ("fast < 100", "does not hold"),
        ("slow < fast", "holds"),
        # More would.
        ("fast >= 130", "not decided"),
        ("fast < 130", "not decided"),
        ("fast / slow < 5", "not decided"),
        ("0.9 < fast / 120 < 1.1", "not decided"),
        ("min(fast, 100) == 100", "holds"),
        # It is not about a bound.
        ("slow < 50", "holds"),
        ("failed == 0", "holds"),
    ],
)
@pytest.mark.parametrize(
    ("measure", "metrics"),
    [
        ("goodput('fast')", {"goodput": 120.0, **BOUNDED}),
        ("capacity('fast')", {"capacity": SEARCHED | {"rate": 120.0}, **BOUNDED}),
        ("broke_at('fast')", {"break_point": {"offered": 120.0}, "limited_by": "others"}),
        ("max_rps('fast')", {"max_rps": 120.0, "limited_by": "vu_cap"}),
        (
            "rate_within('fast', 200)",
            {"windows": [{"p95_ms": 20, "goodput": 120.0}], "outcome": "held"}
            | {"profile": "breakpoint", "limited_by": "none"},
        ),
    ],
)
def test_lower_bound_decides_only_where_more_changes_nothing(holds, verdict, measure, metrics):
    cells = [cell("fast", failed=0, **metrics), cell("slow", goodput=40.0)]
    measures = {"fast": measure, "slow": "goodput('slow')", "failed": "failed('fast')"}
    result = evaluate_one([claim(holds, **measures)], cells)
    assert result["verdict"] == verdict
    if verdict == "not decided":
        assert "it depends on how much more fast can do" in result["notes"]


def test_two_lower_bounds_decide_nothing_about_their_ratio():
    cells = [cell("a", goodput=90.0, **BOUNDED), cell("b", goodput=30.0, **BOUNDED)]
    result = evaluate_one([claim("a > b", a="goodput('a')", b="goodput('b')")], cells)
    assert (result["verdict"], result["basis"]) == ("not decided", "")
    # Of several repeats, one is enough.
    cells = [cell("a", n, goodput=90.0) for n in (1, 2)] + [cell("a", 3, goodput=90.0, **BOUNDED)]
    result = evaluate_one([claim("a < 200", a="goodput('a')")], cells)
    assert result["verdict"] == "holds"
    cells = [cell("a", n, goodput=90.0, **BOUNDED) for n in (1, 2, 3)]
    result = evaluate_one([claim("a < 200", a="goodput('a')")], cells)
    assert result["verdict"] == "not decided"


def test_layer_sharing_cpu_with_generator_is_reported():
    cells = [cell("c", goodput=5.0, legacy={"layer_cpus_shared_with": "the load generator"})]
    (note,) = evaluate_one([claim("x > 0", x="goodput('c')")], cells)["notes"]
    assert "c: the layer's Redis shares its CPU with the load generator" in note
    cells = [cell("c", goodput=5.0, legacy={"layer_cpus_shared_with": "nobody"})]
    assert evaluate_one([claim("x > 0", x="goodput('c')")], cells)["notes"] == []


def test_cell_without_successes_has_no_verdict():
    cells = [cell("a", failed=3, successes=0), cell("b", failed=3, successes=1)]
    result = evaluate_one([claim("a == b", a="failed('a')", b="failed('b')")], cells)
    assert (result["verdict"], result["notes"]) == ("not measured", ["a gave no successful answer"])
    assert result["measured"] == {"a": 3, "b": 3}


def test_unmeasured_cell_reports_its_reason():
    reason = "Python 3.6 is not here"
    cells = [{"name": "old", "repeat": 1, "state": "not measured", "error": reason}]
    result = evaluate_one([claim("x > 0", x="failed('old')", y="failed('gone')")], cells)
    assert result["verdict"] == "not measured"
    assert result["notes"] == [f"old was not measured: {reason}", "gone was not measured"]


RESULT_METRICS = [name for name, metric in METRICS.items() if metric.path == (name,)]
ZEROS = {**dict.fromkeys(RESULT_METRICS, 0), "websockets": {}}


@pytest.mark.parametrize("path", sorted(EXPERIMENTS.glob("*.toml")), ids=lambda path: path.stem)
def test_project_claims_do_not_hold_without_successes(path):
    experiment = files.parse(path.stem, path.read_text())
    windows = [WINDOW]
    cells = [cell(c.name, **ZEROS, windows=windows) for c in matrix.cells(experiment)]
    results = evaluate(
        [item.model_dump() for item in experiment.claims], [CellRun.of(cell) for cell in cells]
    )
    assert {item["id"] for item in results if item["verdict"] != "not measured"} == set()


def test_search_without_a_confirmation_is_reported():
    capacity = {"rate": 50.0, "low": 45.0, "high": 55.0}
    cells = [
        cell("c", repeat, capacity=capacity | {"confirmed": confirmed})
        for repeat, confirmed in ((1, True), (2, False))
    ]
    result = evaluate_one([claim("x > 0", x="capacity('c')")], cells)
    assert result["notes"] == ["c: 1 of 2 capacities were not confirmed"]


def test_generator_limit_is_reported():
    result = evaluate_one([claim("x > 0", x="goodput('nginx')")], CELLS)
    assert result["notes"] == [
        "nginx is limited by the load generator's CPU: its rates are lower bounds"
    ]


@pytest.mark.parametrize(
    ("invalid", "message"),
    [
        (claim("x > 0", x="goodput('absent')"), "no cell absent"),
        (claim("x > 0", x="speed('none')"), "speed"),
        (claim("y > 0", x="goodput('none')"), "y"),
        (claim("x >", x="goodput('none')"), "claim c: "),
        (claim("x > 0", x="goodput('none', 'twice')"), "positional argument"),
        (claim("x > 0", x="builds('none', 'hotle_detail')"), "known: hotel_list, hotel_detail"),
        (claim("x > 0", x="answers('none', 'nginx', 'hit')"), "hit is not known here"),
        (claim("x > 0", x="setting('none', 'LAB_SERVER')"), "LAB_SERVER is not known here"),
        (claim("__import__('os')", x="goodput('none')"), "__import__"),
    ],
)
def test_invalid_expression_is_found_before_the_run(invalid, message):
    (problem,) = problems([invalid], {"none"})
    assert message in problem
