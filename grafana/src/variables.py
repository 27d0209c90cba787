"""The choices at the head of a dashboard, and what it works out from them."""

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
    """The runs of the dashboard's range: all of them, so that a new one is seen when it starts."""
    variable = _testid("testid", "test", marks.newest_tests("$__range"))
    everything = VariableOption(selected=True, text=[ALL], value=["$__all"])
    return variable.multi(True).include_all(True).all_value(".+").current(everything)


def planned_test() -> QueryVariable:
    """One run with an arrival rate; the newest unless another is chosen."""
    return _testid("testid", "test", marks.newest_planned_tests("$__range"))


def compared(name: str, label: str, expr: str) -> QueryVariable:
    """One of two runs that are held against each other."""
    return _testid(name, label, expr)


def figure(name: str, expr: str) -> QueryVariable:
    """A whole number that the dashboard works out; nobody has to see it."""
    variable = _asked(name, name, expr)
    return variable.regex(r"/(-?\d+) \d+$/").hide(VariableHide.HIDE_VARIABLE)


def _testid(name: str, label: str, expr: str) -> QueryVariable:
    return _asked(name, label, expr).regex(_TESTID)


def _asked(name: str, label: str, expr: str) -> QueryVariable:
    asked: dict[str, object] = {"query": f"query_result({expr})", "refId": name}
    return (
        QueryVariable(name)
        # Without one the SDK gives all the same, and Grafana 9.4 then knows none of them.
        .id(name)
        .label(label)
        .datasource(SOURCE)
        .query(asked)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.DISABLED)
    )
