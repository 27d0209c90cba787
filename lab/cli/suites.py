"""The commands that ask a fixed question, and answer it with their exit code."""

from typing import Annotated, Any

import typer

from lab.cli.options import Json, answer, engine_here
from lab.cli.output import calibration as calibration_output
from lab.cli.output import endurance
from lab.cli.output.bench import bench_table
from lab.errors import UsageError
from lab.suites import overload as overloading
from lab.suites.bench import command, growth
from lab.suites.calibration import command as calibrating
from lab.suites.soak import run as soaking


def bench(
    only: Annotated[list[str] | None, typer.Option(help="Rows, such as detail-fast.")] = None,
    repeat: Annotated[int | None, typer.Option(min=1, max=100, help="Repeats.")] = None,
    seconds: Annotated[int | None, typer.Option(min=1, max=600, help="Of each load.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Quick, against lower floors: before a merge.")
    ] = False,
    grown: Annotated[
        bool, typer.Option("--growth", help="With 10 million bookings: 15 to 25 minutes, 10 GB.")
    ] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="And look where each way's time goes, with py-spy.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Measure the fast path against its own limits; exit code 1 when one is not reached."""
    if grown and (check or only or profile):
        raise UsageError(
            "--growth is a benchmark of its own; it takes no --check, --only or --profile."
        )
    if grown:
        document = growth.run(engine_here(), repeats=repeat, seconds=seconds)
    else:
        asked = command.asked(
            only or [], repeats=repeat, seconds=seconds, check=check, profile=profile
        )
        document = command.run(engine_here(), asked)
    answer(document, as_json, bench_table)
    if not command.is_reached(document):
        raise typer.Exit(1)


def calibrate(
    only: Annotated[list[str] | None, typer.Option(help="Cells, such as queue.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A look: shorter loads.")] = False,
    as_json: Json = False,
) -> None:
    """Measure servers that are known, and say how far off the lab was; exit code 1 when too far."""
    document = calibrating.run(engine_here(), only or [], quick=quick)
    answer(document, as_json, calibration_output.calibration)
    if not calibrating.is_calibrated(document):
        raise typer.Exit(1)


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
