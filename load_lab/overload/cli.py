"""`lab overload`: what is typed.

What it needs is imported when it runs: `lab --help` reads this module.
"""

from typing import Annotated

import typer

from load_lab.load import ApiScenario as Api
from load_lab.options import ApiScenario, Json, current_engine, print_result, whole_seconds
from load_lab.soak.cli import exit_unless_kept


def overload(
    scenario: ApiScenario = Api.DETAIL,
    duration: Annotated[str, typer.Option(help="Length of each overload: 10s to 10m.")] = "20s",
    as_json: Json = False,
) -> None:
    """Load the stack with twice its capacity.

    Measures with LAB_SHED on and off, in 6 minutes. Exit code 1 if load shedding fails.
    """
    from load_lab.overload import overload as measurement
    from load_lab.overload import wording

    document = measurement.run(current_engine(), scenario, whole_seconds(duration, 10, 600))
    print_result(document, as_json, wording.overload)
    exit_unless_kept(document)
