"""What a profile's lists and its last line say."""

import pytest

from load_lab.profile import wording
from load_lab.profile.flamegraph import HotFunction
from load_lab.profile.ranking import function_rows, headline, own_rows, shown, statement_rows
from load_lab.targets.statements import Statement, Statements

SELECT = 'SELECT "shop_item"."id", "shop_item"."name" FROM "shop_item" WHERE "shop_item"."id" = $1'
LONG = SELECT.replace('."name"', "".join(f'."name", "shop_item"."field_{n}"' for n in range(9)))


def statements(**ms):
    found = {
        (n, "shop", "me"): Statement("shop", "me", text, 10, each)
        for n, (text, each) in enumerate(ms.items())
    }
    return Statements("shop", "me", found)


def test_statements_of_an_app_are_those_since_then_without_the_labs():
    before = statements(SELECT_a=1.0, pg_stat_activity=0.0)
    now = statements(SELECT_a=1.0, pg_stat_activity=9.0, SELECT_b=3.0)
    assert [each.text for each in now.own_since(before)] == ["SELECT_b"]
    other = Statements("another", "me", now.found)
    assert other.own_since(before) == []


def test_statement_has_its_calls_and_share_of_a_request():
    (row,) = statement_rows([Statement("shop", "me", "SELECT\n  1", 300, 60.0)], 100, 2.0)
    assert row == {
        "statement": "SELECT 1",
        "calls_per_request": 3.0,
        "ms_per_request": 0.6,
        "percent": 30.0,
    }


def test_statement_of_a_small_share_is_listed():
    (row,) = statement_rows([Statement("shop", "me", "SELECT 1", 100, 5.0)], 100, 200.0)
    assert (row["ms_per_request"], row["percent"]) == (0.05, 0.0)
    assert statement_rows([Statement("shop", "me", "SELECT 1", 1, 0.01)], 100, 200.0) == []


def test_columns_of_a_long_statement_are_cut():
    assert shown(SELECT) == SELECT
    short = 'SELECT "shop_item"."id", "s… FROM "shop_item" WHERE "shop_item"."id" = $1'
    assert shown(LONG).replace("sh…", "s…") == short or shown(LONG).endswith(short[-50:])
    assert len(shown(LONG)) < 100
    assert len(shown("x" * 500)) == 141


def test_last_line_has_the_first_function_and_statement():
    functions = function_rows([HotFunction("total", "shop/views.py:7", 60, 80)], 100)
    rows = statement_rows([Statement("shop", "me", SELECT, 200, 50.0)], 10, 10.0)
    assert headline("GET /a/", functions, rows) == (
        "GET /a/: total (shop/views.py:7) has 60 % of the samples; "
        f"20 × {SELECT} per request: 5 ms in Postgres, 50 % of its time"
    )
    assert headline("GET /a/", functions, []).endswith("of the samples")


def test_functions_of_own_files_are_ranked_with_what_they_call():
    functions = [
        HotFunction("execute", "django/db/utils.py:7", 60, 60),
        HotFunction("total", "shop/views.py:7", 30, 30),
        HotFunction("<module>", "manage.py:1", 0, 100),
        HotFunction("search", "shop/views.py:21", 1, 90),
        HotFunction("<lambda>", "", 1, 95),
    ]
    rows = own_rows(functions, 100, {"shop/views.py", "manage.py"}.__contains__)
    assert [(row["function"], row["cumulative_percent"]) for row in rows] == [
        ("search", 90.0),
        ("total", 30.0),
    ]
    assert own_rows(functions, 19, lambda _: True) == []


@pytest.mark.parametrize("samples", [0, 19])
def test_few_samples_have_no_functions(samples):
    assert function_rows([HotFunction("total", "shop/views.py:7", samples, samples)], samples) == []


@pytest.mark.parametrize(("cpu_seconds", "is_said"), [(8.0, True), (9.5, False)])
def test_samples_that_are_not_cpu_time_are_said(cpu_seconds, is_said):
    hot = HotFunction("total", "v.py:7", 500, 800)
    document = {
        **{"scenario": "mix", "cpu_ms_per_request": 8.0, "requests": 1000, "failed": 0},
        **{"seconds": 20.0, "samples": 1000, "samples_per_second": 100, "files": {}},
        **{"cpu_seconds": cpu_seconds, "hottest": function_rows([hot], 1000)},
    }
    texts = [str(each) for each in wording.profile(document).renderables]
    assert any("20% of the samples are not CPU time" in each for each in texts) == is_said
    # As in a profile of an older version.
    assert not any("None of the functions" in each for each in texts)
    own = [str(each) for each in wording.profile(document | {"own": []}).renderables]
    assert any("None of the functions" in each for each in own)
