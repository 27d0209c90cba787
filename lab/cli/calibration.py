"""The command that measures what is known, to see whether the lab can be believed."""

from typing import Annotated

import typer

from lab.cli.common import Json, answer, engine_here
from lab.cli.output import calibration
from lab.suites.calibration import command


def calibrate(
    only: Annotated[list[str] | None, typer.Option(help="Cells, such as queue.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A look: shorter loads.")] = False,
    as_json: Json = False,
) -> None:
    """Measure servers that are known, and say how far off the lab was; exit code 1 when too far."""
    document = command.run(engine_here(), only or [], quick=quick)
    answer(document, as_json, calibration.calibration)
    if not command.is_calibrated(document):
        raise typer.Exit(1)
