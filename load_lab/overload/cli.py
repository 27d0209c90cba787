"""`lab overload`: what is typed.

What it needs is imported when it runs: `lab --help` reads this module.
"""

from typing import Annotated

import typer

from load_lab.load import ApiScenario as Api
from load_lab.load.chosen_target import find_subject
from load_lab.options import Json, Target, YesLoad, current_engine, print_result, whole_seconds
from load_lab.soak.cli import exit_unless_kept


def overload(
    scenario: Annotated[
        Api | None, typer.Option(help="Which requests arrive. Default: detail.")
    ] = None,
    duration: Annotated[str, typer.Option(help="Length of each overload: 10s to 10m.")] = "20s",
    target: Target = None,
    yes_load: YesLoad = None,
    as_json: Json = False,
) -> None:
    """Load the stack, or a target, with twice its capacity.

    The stack is measured with LAB_SHED on and off, in 6 minutes; exit code 1 if load shedding
    fails. A target takes 5 minutes; exit code 1 if it does not get over it.
    """
    from load_lab.overload import overload as measurement
    from load_lab.overload import wording

    seconds = whole_seconds(duration, 10, 600)
    subject = find_subject(
        current_engine(), target, yes_load, scenario, Api.DETAIL, puts_data_back=True
    )
    document = measurement.run(subject, seconds)
    print_result(document, as_json, wording.overload)
    exit_unless_kept(document)
