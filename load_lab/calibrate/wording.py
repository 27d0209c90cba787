"""The table of `lab calibrate` for the terminal."""

import math
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

_COLOURS = {"held": "green", "missed": "red", "void": "yellow"}
_ORDER = {"missed": 0, "void": 1, "held": 2}


def calibration(document: dict[str, Any]) -> RenderableType:
    """Return a table with one row per check: the reference value, then the lab's result."""
    table = Table(title=_title(document), title_justify="left")
    for name in ("cell", "metric"):
        table.add_column(name, overflow="fold")
    for name in ("known", "reported", "off", "allowed", ""):
        table.add_column(name, justify="right", no_wrap=True)
    for cell in document["cells"]:
        for number, (check, runs) in enumerate(_worst_by_name(cell["checks"])):
            table.add_row(cell["cell"] if number == 0 else "", *_cells(check, runs))
    return Group(
        table,
        *_servers(document),
        *_instrument(document),
        *_reasons(document),
        *_end(document),
    )


def _title(document: dict[str, Any]) -> str:
    host = document["host"]
    shared = " (shared!)" if host["shared_cpus"] else ""
    return (
        f"Reference values and the lab's results: {'preview' if document['quick'] else ''}"
        f"{'; ' if document['quick'] else ''}server on CPU {host['target_cpus']}, load on CPU "
        f"{host['load_cpus']}{shared}"
    )


def _worst_by_name(checks: list[dict[str, Any]]) -> list[tuple[dict[str, Any], int]]:
    """Group the checks of several runs by name: the worst of them, and their number."""
    by_name: dict[str, list[dict[str, Any]]] = {}
    for check in checks:
        by_name.setdefault(check["what"], []).append(check)
    return [(min(same, key=_severity), len(same)) for same in by_name.values()]


def _severity(check: dict[str, Any]) -> tuple[int, float]:
    return _ORDER[check["outcome"]], -abs(check["off"] or 0)


def _cells(check: dict[str, Any], runs: int) -> tuple[str, ...]:
    outcome, unit = check["outcome"], check["unit"]
    what = f"{check['what']} (worst of {runs})" if runs > 1 else check["what"]
    return (
        what,
        _value(check["expected"], unit),
        escape(_value(check["found"], unit)),
        _off(check),
        _allowed(check),
        f"[{_COLOURS[outcome]}]{outcome}[/{_COLOURS[outcome]}]",
    )


def _value(value: float | str | None, unit: str) -> str:
    if value is None:
        return "–"
    return value if isinstance(value, str) else f"{value:.10g}{unit}"


def _off(check: dict[str, Any]) -> str:
    if check["off"] is None or not check["allowed"]:
        return ""
    if check["factor"]:
        return f"× {check['off']:.3f}" if math.isfinite(check["off"]) else "endless"
    return f"{100 * check['off']:+.2f} %"


def _allowed(check: dict[str, Any]) -> str:
    if not check["allowed"]:
        return "equal"
    if check["factor"]:
        return f"× {check['allowed']:g}"
    above = check["allowed_above"]
    return f"+{100 * above:.3g} %" if above > check["allowed"] else f"{100 * check['allowed']:g} %"


def _servers(document: dict[str, Any]) -> list[RenderableType]:
    """Return the accuracy of the reference servers themselves."""
    table = Table(
        title="The known servers by their own record, first run of each", title_justify="left"
    )
    table.add_column("cell")
    table.add_column("model", overflow="fold")
    for name in ("answers", "mean", "timer late: p50", "p99", "loopback"):
        table.add_column(name, justify="right", no_wrap=True)
    for cell in document["cells"]:
        for run in cell["runs"][:1]:
            server = run["server"]
            names = ("mean_ms", "late_p50_ms", "late_p99_ms", "floor_ms")
            times = ("–" if server[name] is None else f"{server[name]:.3f} ms" for name in names)
            table.add_row(cell["cell"], cell["server"], str(server["requests"]), *times)
    return [table] if table.row_count else []


def _instrument(document: dict[str, Any]) -> list[str]:
    """Return what the instrument adds to response times: a result, not an allowance."""
    added = document.get("instrument_ms", {})
    texts = [f"{name} {ms['mean']:.2f} ms (at most {ms['most']:.2f})" for name, ms in added.items()]
    return (
        [f"The instrument's own error, added to response times: {', '.join(texts)}"]
        if texts
        else []
    )


def _reasons(document: dict[str, Any]) -> list[str]:
    return [
        f"[dim]{cell['cell']}, {check['what']}:[/dim] void, since {escape(check['void'])}"
        for cell in document["cells"]
        for check in cell["checks"]
        if check["outcome"] == "void"
    ]


def _end(document: dict[str, Any]) -> list[str]:
    warnings = [f"[yellow]Warning:[/yellow] {escape(warning)}." for warning in document["warnings"]]
    return [*warnings, f"In full: {document['files']['result']}"]
