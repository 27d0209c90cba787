"""Every option that commands share, and how they print a result."""

from typing import Annotated, Any

import typer

from lab.analysis.result import without_series
from lab.console import out, print_json
from lab.settings import load_settings
from lab.stack.choice import choose_engine
from lab.stack.engine import Engine

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Profile = Annotated[str, typer.Argument(help="smoke, breakpoint, hold, spike, closed, …")]
Scenario = Annotated[
    str | None,
    typer.Option(
        help="journey, list, detail, booking, staleness, workbench, availability, faults."
    ),
]
Rate = Annotated[int | None, typer.Option(min=1, help="Top requests per second.")]
Duration = Annotated[str | None, typer.Option(help="For example 90s or 5m.")]
VirtualUsers = Annotated[
    int | None, typer.Option(min=1, help="Virtual users of smoke, closed and closed-ramp.")
]
Route = Annotated[str | None, typer.Option(help="Of workbench: io_read, hello, …")]
Connections = Annotated[int | None, typer.Option(min=1, help="WebSockets that availability holds.")]
Retries = Annotated[
    int | None, typer.Option(min=0, help="Of workbench: how often a failed request is resent.")
]
TestId = Annotated[str | None, typer.Option(help="A name for the run.")]
P95 = Annotated[int, typer.Option(min=1, help="Bound on p95, in ms.")]
MaxErrors = Annotated[float, typer.Option(min=0, max=1, help="Bound on errors.")]
MinAchieved = Annotated[float, typer.Option(min=0, max=1, help="Bound on achieved.")]


def engine_here() -> Engine:
    """The engine of the running stack, or the one that would be started."""
    return choose_engine(load_settings())


def answer(document: dict[str, Any], as_json: bool, readable: Any) -> None:
    """The result on standard output: one JSON document, or what `readable` makes of it."""
    if as_json:
        print_json(_compact(document))
    else:
        out.print(readable(document))


def _compact(document: dict[str, Any]) -> dict[str, Any]:
    """For --json: what happened second by second stays in the file that `files` names."""
    several = {
        name: [without_series(each) for each in document[name]]
        for name in ("runs", "arms")
        if name in document
    }
    return without_series(document) | several
