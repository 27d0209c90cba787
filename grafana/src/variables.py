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

_TESTID = '/testid="([^"]+)"/'
ALL = "All"


def tests() -> QueryVariable:
    """Select runs of the dashboard's range; default: all, so that a new run shows up at once."""
    variable = _testid("testid", "test", runs.newest_tests("$__range"))
    all_runs = VariableOption(selected=True, text=[ALL], value=["$__all"])
    return variable.multi(True).include_all(True).all_value(".+").current(all_runs)


def planned_test() -> QueryVariable:
    """Select one run with an arrival rate; default: the newest."""
    return _testid("testid", "test", runs.newest_planned_tests("$__range"))


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
