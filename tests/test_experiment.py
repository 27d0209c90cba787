"""Declared experiments: what a file may say, which cells it makes, in which order."""

import pytest

from lab.errors import UsageError
from lab.experiment import load, matrix
from lab.paths import EXPERIMENTS, ROOT
from lab.settings import load_settings

TEXT = (ROOT / "tests/samples/small.toml").read_text()


def parsed(text=TEXT):
    return load.parse("t", text)


def changed(old, new):
    assert old in TEXT
    return parsed(TEXT.replace(old, new))


def test_cells_are_the_product_less_what_is_excluded():
    names = [cell.name for cell in matrix.cells(parsed())]
    assert names == ["list/none", "list/redis", "list/nginx", "booking/none"]
    assert matrix.excluded(parsed()) == [
        {"cells": ["booking/redis", "booking/nginx"], "because": "no cache answers a POST"}
    ]


def test_a_position_goes_over_the_whole_and_a_tune_over_the_position():
    plain, redis, nginx, _ = matrix.cells(parsed())
    assert plain.settings == {"LAB_WORKERS": "2"}
    assert nginx.settings == {"LAB_WORKERS": "3", "LAB_NGINX_CACHE": "basic"}
    assert (plain.workload.rate, redis.workload.rate) == (10, 70)
    assert (plain.warm, redis.warm) == ("none", "none")
    assert nginx.warm.rate == 5
    assert nginx.title == "the list, Nginx"


def test_repeats_are_interleaved_and_every_other_round_runs_backwards():
    found = matrix.order(matrix.cells(parsed()), 3)
    assert [repeat for _, repeat in found] == [1] * 4 + [2] * 4 + [3] * 4
    names = [cell.name for cell, _ in found]
    assert names[4:8] == names[:4][::-1]
    assert names[8:] == names[:4]


def test_quick_scales_durations_and_nothing_else():
    *_, nginx, booking = matrix.cells(parsed())
    short = matrix.quick(nginx)
    assert (short.workload.duration, short.warm.duration) == ("50s", "20s")
    assert short.workload.rate == nginx.workload.rate
    assert matrix.quick(booking).workload.duration == "15s"


def test_a_cells_time_counts_its_warming():
    plain, _, nginx, _ = matrix.cells(parsed())
    assert nginx.expected_seconds - plain.expected_seconds == 120


@pytest.mark.parametrize(
    ("old", "new", "said"),
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
    ],
)
def test_a_wrong_file_is_refused_with_the_place(old, new, said):
    with pytest.raises(UsageError) as refused:
        changed(old, new)
    assert said in str(refused.value)
    assert "experiments/t.toml" in str(refused.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"page"', '"memcached"', "LAB_REDIS_CACHE=memcached is not known. Allowed: off, page"),
        ("LAB_REDIS_CACHE", "LAB_REDDIS_CACHE", "There is no setting LAB_REDDIS_CACHE"),
    ],
)
def test_an_unknown_setting_or_value_is_refused_with_its_cell(old, new, said):
    with pytest.raises(UsageError) as refused:
        load.checked_cells("t", changed(old, new), load_settings({}))
    assert said in str(refused.value)
    assert "cell list/redis" in str(refused.value)


def test_a_cell_without_a_load_is_refused():
    text = TEXT.replace('workload = { profile = "breakpoint", scenario = "booking"', "#")
    with pytest.raises(UsageError, match="cell booking/none has no workload"):
        load.checked_cells("t", parsed(text), load_settings({}))


@pytest.mark.parametrize("path", sorted(EXPERIMENTS.glob("*.toml")), ids=lambda path: path.stem)
def test_the_projects_own_experiments_are_right(path):
    experiment = load.parse(path.stem, path.read_text())
    cells = load.checked_cells(path.stem, experiment, load_settings({}))
    names = {cell.name for cell in cells}
    from lab.experiment.claims import problems

    assert problems([claim.model_dump() for claim in experiment.claims], names) == []
    assert {each.cell for each in experiment.published} <= names
