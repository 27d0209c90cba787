"""What `lab k6` takes: the options of its command line."""

from typing import Annotated

import typer

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
