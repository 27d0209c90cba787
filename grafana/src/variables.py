"""The variables at the top of a dashboard, and the hidden ones derived from them."""

from grafana_foundation_sdk.builders.dashboard import QueryVariable
from grafana_foundation_sdk.models.dashboard import (
    VariableHide,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from grafana.src.page import SOURCE
from grafana.src.queries import runs
from grafana.src.queries.runs import NEWEST

_TESTID = '/testid="([^"]+)"/'
_ALL = "All"


def tests() -> list[QueryVariable]:
    """Select runs of the dashboard's range; default: the newest, also once another one starts.

    `testid` is the choice, the hidden `tests` the runs that it means.
    """
    starts = runs.starts("$__range")
    choice = _testid("testid", "test", runs.choices(starts)).multi(True).include_all(True)
    choice.all_value(".+").current(VariableOption(selected=True, text=[NEWEST], value=[NEWEST]))
    return [choice, *_chosen(starts)]


def planned_test() -> list[QueryVariable]:
    """Select one run with an arrival rate; default: the newest, also once another one starts."""
    starts = runs.planned_starts("$__range")
    choice = _testid("testid", "test", runs.choices(starts))
    choice.current(VariableOption(selected=True, text=NEWEST, value=NEWEST))
    return [choice, *_chosen(starts)]


def _chosen(starts: str) -> list[QueryVariable]:
    """Return the hidden variables `tests`, with all runs that were chosen, and `last`, the newest
    of them, for a link to "Compare".
    """
    every = VariableOption(selected=True, text=[_ALL], value=["$__all"])
    tests = _hidden("tests", runs.chosen(starts)).multi(True).include_all(True).current(every)
    return [tests, _hidden("last", f"topk(1, {runs.chosen(starts)})")]


def _hidden(name: str, expr: str) -> QueryVariable:
    return _testid(name, name, expr).hide(VariableHide.HIDE_VARIABLE)


def compared_run(name: str, label: str, expr: str) -> QueryVariable:
    """Select one of two runs to compare."""
    return _testid(name, label, expr)


def hidden_number(name: str, expr: str) -> QueryVariable:
    """Compute a whole number in a hidden variable."""
    variable = _query(name, name, expr)
    return variable.regex(r"/(-?\d+) \d+$/").hide(VariableHide.HIDE_VARIABLE)


def _testid(name: str, label: str, expr: str) -> QueryVariable:
    return _query(name, label, expr).regex(_TESTID)


def _query(name: str, label: str, expr: str) -> QueryVariable:
    query: dict[str, object] = {"query": f"query_result({expr})", "refId": name}
    return (
        QueryVariable(name)
        # Without an id the SDK gives all variables the same one, and Grafana 9.4 then finds none.
        .id(name)
        .label(label)
        .datasource(SOURCE)
        .query(query)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.DISABLED)
    )
