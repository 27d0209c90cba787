"""Experiment files: validation, the cells they define, and the order of cells."""

import pytest

from load_lab.capacity.measurement import LAST_SECONDS
from load_lab.errors import UsageError
from load_lab.experiments import files, matrix, resume
from load_lab.experiments.cell import load_of
from load_lab.experiments.plan import make_plan
from load_lab.experiments.runner import Slowness
from load_lab.paths import EXPERIMENTS, ROOT
from load_lab.settings import load_settings

TEXT = (ROOT / "tests/support/samples/small.toml").read_text()


def parse(text=TEXT):
    return files.parse("t", text)


def replace_text(old, new):
    assert old in TEXT
    return parse(TEXT.replace(old, new))


def test_cells_are_product_of_axes_without_exclusions():
    names = [cell.name for cell in matrix.cells(parse())]
    assert names == ["list/none", "list/redis", "list/nginx", "booking/none"]
    assert matrix.exclusions(parse()) == [
        {"cells": ["booking/redis", "booking/nginx"], "because": "no cache answers a POST"}
    ]


def test_position_overrides_defaults_and_tune_overrides_position():
    plain, redis, nginx, _ = matrix.cells(parse())
    assert plain.settings == {"LAB_WORKERS": "2"}
    assert nginx.settings == {"LAB_WORKERS": "3", "LAB_NGINX_CACHE": "basic"}
    assert (plain.workload.rate, redis.workload.rate) == (10, 70)
    assert (plain.warm, redis.warm) == ("none", "none")
    assert nginx.warm.rate == 5
    assert nginx.title == "the list, Nginx"


def test_repeats_are_interleaved_and_alternate_rounds_reversed():
    order = matrix.order(matrix.cells(parse()), 3)
    assert [repeat for _, repeat in order] == [1] * 4 + [2] * 4 + [3] * 4
    names = [cell.name for cell, _ in order]
    assert names[4:8] == names[:4][::-1]
    assert names[8:] == names[:4]


CLAIM = """
[[claims]]
id = "c"
text = "Redis helps"
measures = { none = "goodput('list/none')", redis = "goodput('list/redis')" }
holds = "redis > none"
"""
DECIDING = ["list/none", "list/redis"]


def _claim_plan(**options):
    experiment = parse(TEXT + CLAIM)
    arguments = {"only": [], "repeats": 3, "quick": False} | options
    return make_plan("t", TEXT + CLAIM, experiment, matrix.cells(experiment), **arguments)


def _repeats(plan):
    names = [cell.name for cell, _ in plan.todo]
    return {name: names.count(name) for name in names}


def test_repeats_are_of_the_cells_that_decide_claims():
    once = {"list/nginx": 1, "booking/none": 1}
    assert _repeats(_claim_plan()) == dict.fromkeys(DECIDING, 3) | once
    # What is asked for by name is repeated, whether or not a claim needs it.
    assert _repeats(_claim_plan(only=["booking/none"])) == {"booking/none": 3}


def test_resumed_run_has_the_repeats_that_it_began_with(tmp_path):
    text = TEXT.replace("repeats = 1", "repeats = 2") + CLAIM
    experiment = parse(text)
    # The file's own repeats are of every cell.
    plan = make_plan(
        *("t", text, experiment, matrix.cells(experiment)), only=[], repeats=None, quick=False
    )
    assert set(_repeats(plan).values()) == {2}
    for began in (plan, _claim_plan()):
        stored = [{"name": cell.name, "repeat": repeat} for cell, repeat in began.todo]
        document = {"plan": stored, "repeats": began.repeats, "quick": False}
        file = tmp_path / "t.toml"
        file.write_text(began.text)
        resumed = resume._remake_plan(str(file), document, None)
        assert [(cell.name, repeat) for cell, repeat in resumed.todo] == [
            (entry["name"], entry["repeat"]) for entry in stored
        ]


def test_quick_scales_only_durations():
    *_, nginx, booking = matrix.cells(parse())
    shortened = matrix.shorten(nginx)
    assert (shortened.workload.duration, shortened.warm.duration) == ("50s", "20s")
    assert shortened.workload.rate == nginx.workload.rate
    assert matrix.shorten(booking).workload.duration == "15s"


QUICK = """
[quick]
duration = "20s"
only = ["list/*"]
"""


def quick_plan(text, **options):
    experiment = parse(text)
    arguments = {"only": [], "repeats": None, "quick": True} | options
    return make_plan("t", text, experiment, matrix.cells(experiment), **arguments)


def test_quick_measures_named_cells_once_within_its_duration():
    text = TEXT.replace("repeats = 1", "repeats = 3") + QUICK
    plan = quick_plan(text)
    assert [(cell.name, repeat) for cell, repeat in plan.todo] == [
        *(("list/none", 1), ("list/redis", 1), ("list/nginx", 1)),
    ]
    assert {cell.workload.duration for cell, _ in plan.todo} == {"20s"}
    assert plan.todo[2][0].warm.duration == "20s"


def test_only_option_overrides_quick_cells_of_the_file():
    plan = quick_plan(TEXT + QUICK, only=["booking/none"])
    assert [(cell.name, cell.workload.duration) for cell, _ in plan.todo] == [
        ("booking/none", "20s")
    ]


@pytest.mark.parametrize(
    ("only", "message"),
    [
        ('["list/none"]', "claim c: no cell list/redis, among those of [quick]"),
        ('["list/*", "lists"]', "quick: lists fits no cell"),
    ],
)
def test_claim_undecidable_by_quick_cells_is_rejected(only, message):
    text = TEXT + CLAIM + QUICK.replace('["list/*"]', only)
    with pytest.raises(UsageError) as error:
        quick_plan(text, quick=False)
    assert message in str(error.value)


CLAIM = """
[[claims]]
id = "c"
text = "t"
measures = { none = "rps('list/none')", redis = "rps('list/redis')" }
holds = "redis > none"
"""


def test_workloads_of_axes_are_merged_and_last_axis_wins():
    text = TEXT.replace('title = "Redis"', 'title = "Redis"\nworkload = { rate = 9, route = "x" }')
    text = text.replace("rate = 70", 'vus = 7\nentry = "server"')
    _, redis, nginx, _ = matrix.cells(parse(text))
    assert redis.workload.model_dump(exclude_none=True) == {
        **{"profile": "breakpoint", "scenario": "list", "duration": "5m", "rate": 9},
        **{"route": "x", "vus": 7, "entry": "server"},
    }
    assert nginx.workload.route is None


def test_one_axis_names_old_stack_and_another_its_arm():
    text = TEXT.replace('title = "Redis"', 'title = "Redis"\nlegacy = { arm = "a-1" }')
    assert {cell.legacy for cell in matrix.cells(parse(text))} == {None}
    text = text.replace('title = "the list"', 'title = "the list"\nlegacy = { stack = "d-3.0" }')
    with pytest.raises(UsageError, match=r"list/none names the old stack d-3\.0, but no arm"):
        files.checked_cells("t", parse(text), load_settings({}))
    text = text.replace('title = "no cache"', 'title = "n"\nlegacy = { arm = "a-2" }')
    text = text.replace('title = "Nginx"', 'title = "n"\nlegacy = { arm = "a-3" }')
    arms = [c.legacy and (c.legacy.stack, c.legacy.arm) for c in matrix.cells(parse(text))]
    assert arms == [("d-3.0", "a-2"), ("d-3.0", "a-1"), ("d-3.0", "a-3"), None]


def test_read_only_cells_need_no_reset():
    assert {cell.reset for cell in matrix.cells(parse())} == {"database"}
    cells = matrix.cells(replace_text('title = "the list"', 'title = "t"\nreset = "nothing"'))
    assert [cell.reset for cell in cells] == ["nothing"] * 3 + ["database"]


def test_published_values_per_five_seconds_become_per_second():
    published = '[[published]]\ncell = "list/none"\nper_5s = 370\n'
    assert parse(TEXT + published).published[0].answers_per_second == 74


def test_expected_seconds_include_warm_up():
    plain, _, nginx, _ = matrix.cells(parse())
    assert nginx.expected_seconds(0) - plain.expected_seconds(0) == 120


# Measured with the target's CPU at a quarter (docs/measured/slow-machine.md): --quick, in seconds.
QUARTER = {
    "detail/naive/none": 98.2,
    "detail/naive/nginx-basic-cold": 126.4,
    "detail/naive/nginx-basic-smoke": 300.0,
    "detail/naive/nginx-basic-stage": 237.7,
    "detail/naive/nginx-protected-cold": 117.7,
    "detail/naive/nginx-protected-warm": 178.6,
    "detail/fast/none": 51.8,
    "detail/fast/nginx-basic-cold": 49.4,
    "detail/fast/nginx-basic-smoke": 77.0,
    "detail/fast/nginx-basic-stage": 58.7,
    "detail/fast/nginx-protected-cold": 51.7,
    "detail/fast/nginx-protected-warm": 49.1,
}


SEARCH = """schema_version = 1
title = "t"
question = "q"
source = "s"
[[axis]]
name = "load"
[axis.positions.list]
title = "the list"
workload = { profile = "capacity", scenario = "list", duration = "2m", bound_ms = 300 }
[[claims]]
id = "c"
text = "enough"
measures = { rate = "capacity('list')", low = "capacity_low('list')" }
holds = "low > 100"
"""


def test_cell_may_search_the_capacity():
    experiment = parse(SEARCH)
    (cell,) = matrix.cells(experiment)
    assert cell.workload.profile == "capacity"
    # The budget, and the last load.
    assert cell.expected_seconds() > 120 + LAST_SECONDS
    assert matrix.shorten(cell).workload.duration == "120s"
    # k6 checks one of the loads of the search.
    assert load_of(cell.workload).profile == "trial"
    make_plan("t", SEARCH, experiment, [cell], only=[], repeats=1, quick=False)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"2m"', '"80s"', "80s is too short a search for the capacity: 120s is the least"),
        ("bound_ms = 300", "rate = 5", "a search for the capacity has no rate"),
        ('title = "the list"', 'title = "l"\nwarm = { profile = "capacity", scenario = "list", '
         'duration = "2m" }', "a search for the capacity is no warm-up"),
    ],
)  # fmt: skip
def test_search_that_can_not_be_is_rejected(old, new, message):
    assert old in SEARCH
    with pytest.raises(UsageError, match=message):
        files.checked_cells("t", parse(SEARCH.replace(old, new)), load_settings({}))


@pytest.mark.parametrize("estimate", [1, 4, 8])
def test_time_left_is_known_within_a_quarter_after_three_cells(estimate):
    text = (EXPERIMENTS / "cache-ladder.toml").read_text()
    experiment = files.parse("cache-ladder", text)
    all_cells = files.checked_cells("cache-ladder", experiment, load_settings({}))
    options = {"only": list(QUARTER), "repeats": None, "quick": True}
    plan = make_plan("cache-ladder", text, experiment, all_cells, **options)
    cells = [cell for cell, _ in plan.todo]
    slowness = Slowness(estimate)
    for cell in cells[:3]:
        slowness.correct(cell, QUARTER[cell.name])
    expected = sum(cell.expected_seconds(slowness.value) for cell in cells[3:])
    assert expected == pytest.approx(sum(QUARTER[cell.name] for cell in cells[3:]), rel=0.25)


def test_estimate_is_corrected_by_measured_cells():
    """The machine is four times as slow as was estimated at the start."""
    cell, *_ = matrix.cells(parse())
    slowness = Slowness(1)
    for _ in range(3):
        slowness.correct(cell, cell.expected_seconds(4))
    assert cell.expected_seconds(slowness.value) == pytest.approx(
        cell.expected_seconds(4), rel=0.25
    )
    # An early stop makes a cell shorter than its load; the estimate never becomes negative.
    for _ in range(30):
        slowness.correct(cell, 0)
    assert slowness.value < 0.01


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'layer = "redis" }',
            'layr = "redis" }',
            "there is no axis layr; the axes are load, layer",
        ),
        ('layer = "redis" }', 'layer = "memcached" }', "axis layer has no position memcached"),
        ("rate = 70", 'rate = "fast"', "tune.0.rate"),
        ("rate = 70", "colour = 7", "tune.0.colour: Extra inputs are not permitted"),
        ('duration = "5m"', 'duration = "5 minutes"', "workload.duration"),
        ("schema_version = 1", "schema_version = 2", "schema_version: Input should be 1"),
        ("schema_version = 1", "schema_version = ", "is not TOML"),
        (
            'when = { layer = "redis" }',
            'when = { layer = "redis" }\n[report]\nrows = "server"\n[[tune]]\nwhen = {}',
            "there is no axis server",
        ),
        ("rate = 70", "retries = 11", "tune.0.retries: Input should be less than or equal to 10"),
        (
            'when = { layer = "redis" }',
            'when = { layer = "redis" }\n[report]\ncompare = { lists = "rps" }\n'
            "[[tune]]\nwhen = {}",
            "axis load has no position lists; it has list",
        ),
        (
            'when = { layer = "redis" }',
            'when = { layer = "redis" }\n[report]\ncompare = { list = "rps" }\n'
            'panels = ["load", "layer"]\n[[tune]]\nwhen = {}',
            "compare takes one metric",
        ),
        (
            'when = { layer = "redis" }',
            'when = { layer = "redis" }\n[report]\ncompare = "speed"\n[[tune]]\nwhen = {}',
            "report.compare",
        ),
    ],
)
def test_invalid_file_is_rejected_with_location(old, new, message):
    with pytest.raises(UsageError) as error:
        replace_text(old, new)
    assert message in str(error.value)
    assert "t.toml" in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"page"', '"memcached"', "LAB_REDIS_CACHE=memcached is invalid. Allowed: off, page"),
        ("LAB_REDIS_CACHE", "LAB_REDDIS_CACHE", "There is no setting LAB_REDDIS_CACHE"),
    ],
)
def test_unknown_setting_or_value_is_rejected_with_its_cell(old, new, message):
    with pytest.raises(UsageError) as error:
        files.checked_cells("t", replace_text(old, new), load_settings({}))
    assert message in str(error.value)
    assert "cell list/redis" in str(error.value)


def test_cell_without_workload_is_rejected():
    text = TEXT.replace('workload = { profile = "breakpoint", scenario = "booking"', "#")
    with pytest.raises(UsageError, match="cell booking/none has no workload"):
        files.checked_cells("t", parse(text), load_settings({}))


def test_base_of_published_values_must_be_published():
    text = TEXT + '[[published]]\ncell = "list/none"\nrps = 1\nbase = "list/redis"\n'
    with pytest.raises(UsageError, match="published: base list/redis is no published cell"):
        quick_plan(text)
