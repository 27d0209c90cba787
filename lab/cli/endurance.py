"""The commands that overload the stack, and that load it for long."""

from typing import Annotated, Any

import typer

from lab.cli.common import Json, answer, engine_here
from lab.cli.output import endurance
from lab.suites import overload as overloading
from lab.suites.soak import run as soaking


def overload(
    scenario: Annotated[str, typer.Option(help="detail, booking, journey or list.")] = "detail",
    seconds: Annotated[int, typer.Option(min=10, max=600, help="Of each overload.")] = 20,
    as_json: Json = False,
) -> None:
    """Twice the breaking rate, with LAB_SHED and without; exit code 1 when shedding fails."""
    document = overloading.run(engine_here(), scenario, seconds)
    answer(document, as_json, endurance.overload)
    _exit_unless_kept(document)


def soak(
    duration: Annotated[str, typer.Option(help="For example 3m or 1h.")] = "1h",
    scenario: Annotated[str, typer.Option(help="journey, booking, detail or list.")] = "journey",
    rate: Annotated[
        int | None,
        typer.Option(min=1, help="Requests per second; half of what it bears, if left out."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Half of the breaking rate for long; exit code 1 when something grows beyond its bound."""
    document = soaking.run(engine_here(), soaking.asked(scenario, duration, rate))
    answer(document, as_json, endurance.soak)
    _exit_unless_kept(document)


def _exit_unless_kept(document: dict[str, Any]) -> None:
    if not all(figure["kept"] for figure in document["figures"]):
        raise typer.Exit(1)
