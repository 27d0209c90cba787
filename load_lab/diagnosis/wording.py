"""What limited a run, for the terminal."""

from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from load_lab.diagnosis.split import TITLES
from load_lab.results.bottleneck import Diagnosis
from load_lab.results.formatting import milliseconds, percent, rate

# Of a request's time: less is not worth a word.
_LEAST_MS = 0.05


def bottleneck_lines(found: Diagnosis | None) -> Iterator[str]:
    """Yield the cause, its evidence and what to do next; nothing without a diagnosis."""
    if found is None:
        return
    yield f"bottleneck: {found.headline}"
    yield from (f"  {line}" for line in found.evidence)
    if found.remedy:
        yield f"  next: {found.remedy}"


def explanation(document: dict[str, Any]) -> RenderableType:
    """Return the cause, then all candidates, and where a request's time went."""
    if document["bottleneck"] is None:
        lines = [document["why"]]
        if document["expected_capacity"]:
            expected = rate(document["expected_capacity"])
            lines.append(f"Predicted: the busiest resource is full at about {expected}/s.")
        elif document["not_predicted"]:
            lines.append(f"Not predicted: {document['not_predicted']}.")
        lost = [f"[dim]not seen:[/dim] {escape(each)}" for each in document["unseen"]]
        return Group(
            f"[bold]{escape(document['verdict'])}[/bold]",
            *map(escape, lines),
            *lost,
            *_profile(document),
        )
    found = Diagnosis.model_validate(document["bottleneck"])
    lines = [escape(line) for line in bottleneck_lines(found)]
    return Group(
        f"[bold]{escape(document['verdict'])}[/bold]",
        *lines,
        *_candidates(found),
        *_split(found),
        *_rest(document, found),
        *_profile(document),
        *_proof(document),
    )


def _candidates(found: Diagnosis) -> Iterator[RenderableType]:
    if not found.candidates:
        return
    table = Table(title="What requests wait for or use", title_justify="left")
    table.add_column("cause")
    table.add_column("share of a request, %", justify="right")
    table.add_column("evidence", overflow="fold")
    for one in found.candidates:
        table.add_row(escape(one.name), percent(one.share), escape(one.evidence))
    yield table


def _split(found: Diagnosis) -> Iterator[str]:
    spent = sorted(found.split_ms.items(), key=lambda item: -item[1])
    parts = [f"{TITLES.get(n, n)} {milliseconds(ms)} ms" for n, ms in spent if ms >= _LEAST_MS]
    if parts:
        yield f"one request: {escape(', '.join(parts))}"


def _profile(document: dict[str, Any]) -> Iterator[str]:
    """Yield the last line of `lab profile --after` with this run."""
    if found := document.get("profile"):
        yield f"profile {escape(str(found['profile']))}: {escape(str(found['headline']))}"


def _proof(document: dict[str, Any]) -> Iterator[RenderableType]:
    proof = document.get("proof")
    if proof is None:
        return
    yield f"[bold]{escape(proof['headline'])}[/bold]"
    table = Table(title="Successful responses per second, saturated", title_justify="left")
    for name in ("change", "rates", "factor", "predicted"):
        table.add_column(name, overflow="fold", justify="left" if name == "change" else "right")
    table.add_row("unchanged", _rates(proof["base_rates"]), "", "")
    for row in proof["changes"]:
        change = (escape(row["what"]), _rates(row["rates"]))
        table.add_row(*change, row["text"], f"{row['factor']:.2g} ×")
    yield table


def _rates(rates: list[float]) -> str:
    return ", ".join(map(rate, rates))


def _rest(document: dict[str, Any], found: Diagnosis) -> Iterator[str]:
    if found.predicted_rate is not None:
        broke = document["broke_at"]
        measured = f"; it broke at {rate(broke)}/s" if broke else ""
        predicted = rate(found.predicted_rate)
        yield f"predicted from the quiet part of the load: {predicted}/s{measured}"
    elif found.not_predicted:
        yield f"not predicted: {escape(found.not_predicted)}"
    for lost in document["unseen"]:
        yield f"[dim]not seen:[/dim] {escape(lost)}"
