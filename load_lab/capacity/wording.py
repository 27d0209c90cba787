"""A capacity for the terminal."""

from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from load_lab.results.bottleneck import Diagnosis
from load_lab.results.formatting import milliseconds, percent, rate

# The services that use least CPU are left to the JSON document.
_SHOWN_SERVICES = 4


def capacity(document: dict[str, Any]) -> RenderableType:
    """Return the answer, then what it rests on, then the files."""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, value in _rows(document):
        table.add_row(name, escape(value))
    return Group(f"[bold]{escape(document['headline'])}[/bold]", table)


def _rows(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    slo = document["slo"]
    yield (
        "SLO",
        f"p95 at most {slo['p95_ms']} ms, errors at most {percent(slo['errors'])} %; "
        f"requests {document['arrivals']}",
    )
    if document["alone"]:
        yield "one request alone", f"p50 {milliseconds(document['alone']['p50_ms'])} ms"
    if below := document["at_capacity"]:
        yield f"at {rate(below['rate'])}/s", _below(below, document["slo"])
        yield "CPU there", _cpu(below)
    if above := document["limit"]:
        yield f"at {rate(above['rate'])}/s", f"failed: {above['reason']}; {_sides(above)}"
        yield from _bottleneck(above.get("bottleneck"))
    for note in document["notes"]:
        yield "note", note
    if document["speed_spread"]:
        yield (
            "machine",
            f"the speed of the target's CPUs varied by ±{percent(document['speed_spread'])} %; the "
            "capacity is that at their mean speed",
        )
    yield "measured", f"{document['seconds']:.0f} s, {len(document['holds'])} holds"
    yield from document["files"].items()


def _bottleneck(document: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    """Yield what limited the target there, where it is known."""
    if document is None:
        return
    found = Diagnosis.model_validate(document)
    yield "bottleneck", found.headline
    yield from (("", line) for line in found.evidence)
    if found.remedy:
        yield "next", found.remedy


def _below(hold: dict[str, Any], slo: dict[str, Any]) -> str:
    times = ", ".join(
        f"{name} {milliseconds(hold[f'{name}_ms'])} ms" for name in ("p50", "p95", "p99")
    )
    answered = max(hold["answered"], 1)
    used = hold["slo_used"]
    margin = "" if used is None else f"; p95 {percent(1 - used)} % below {slo['p95_ms']} ms"
    return f"passed: {times}; {percent(hold['failed'] / answered)} % failed{margin}"


def _cpu(hold: dict[str, Any]) -> str:
    services = sorted(hold["services"].items(), key=lambda item: -item[1])[:_SHOWN_SERVICES]
    used = ", ".join(f"{name} {cores:.2f}" for name, cores in services if cores >= 0.01)
    return f"{_sides(hold)}; cores: {used or 'not known'}"


def _sides(hold: dict[str, Any]) -> str:
    if hold["target_cpu"] is None:
        return "CPU not known"
    return f"target's CPUs {hold['target_cpu']:.0%}, generator's {hold['generator_cpu']:.0%}"
