"""The variables at the top of a dashboard, and the hidden ones derived from them."""

from grafana_foundation_sdk.builders.dashboard import QueryVariable
from grafana_foundation_sdk.models.dashboard import (
    VariableHide,
    VariableOption,
    VariableRefresh,
    VariableSort,
)

from grafana.src.page import SOURCE
from grafana.src.queries import marks

_TESTID = '/testid="([^"]+)"/'
ALL = "All"


def tests() -> QueryVariable:
    """Select runs of the dashboard's range; default: all, so that a new run shows up at once."""
    variable = _testid("testid", "test", marks.newest_tests("$__range"))
    everything = VariableOption(selected=True, text=[ALL], value=["$__all"])
    return variable.multi(True).include_all(True).all_value(".+").current(everything)


def planned_test() -> QueryVariable:
    """Select one run with an arrival rate; default: the newest."""
    return _testid("testid", "test", marks.newest_planned_tests("$__range"))


def compared(name: str, label: str, expr: str) -> QueryVariable:
    """Select one of two runs to compare."""
    return _testid(name, label, expr)


def figure(name: str, expr: str) -> QueryVariable:
    """Compute a whole number in a hidden variable."""
    variable = _asked(name, name, expr)
    return variable.regex(r"/(-?\d+) \d+$/").hide(VariableHide.HIDE_VARIABLE)


def _testid(name: str, label: str, expr: str) -> QueryVariable:
    return _asked(name, label, expr).regex(_TESTID)


def _asked(name: str, label: str, expr: str) -> QueryVariable:
    asked: dict[str, object] = {"query": f"query_result({expr})", "refId": name}
    return (
        QueryVariable(name)
        # Without an id the SDK gives all variables the same one, and Grafana 9.4 then finds none.
        .id(name)
        .label(label)
        .datasource(SOURCE)
        .query(asked)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.DISABLED)
    )
