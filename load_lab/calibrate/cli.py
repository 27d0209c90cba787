"""`lab calibrate`: what is typed.

What it needs is imported when it runs: `lab --help` reads this module.
"""

from typing import Annotated

import typer

from load_lab.options import Generators, Json, Quick, current_engine, print_result


def calibrate(
    only: Annotated[list[str] | None, typer.Option(help="Cells to measure: queue, …")] = None,
    quick: Quick = False,
    generators: Generators = 1,
    as_json: Json = False,
) -> None:
    """Measure servers of known capacity.

    Exit code 1 if a result is too far off, 3 if the machine was too noisy to judge. Native engine
    only; takes 4 to 7 minutes.
    """
    from load_lab.calibrate import calibration, wording

    document = calibration.run(current_engine(), only or [], quick=quick, generators=generators)
    print_result(document, as_json, wording.calibration)
    if code := calibration.exit_code(document):
        raise typer.Exit(code)
