"""`lab soak`: what is typed.

What it needs is imported when it runs: `lab --help` reads this module.
"""

from typing import Annotated, Any

import typer

from load_lab.load import ApiScenario as Api
from load_lab.load.chosen_target import find_subject
from load_lab.options import Json, Target, YesLoad, current_engine, print_result


def soak(
    duration: Annotated[str, typer.Option(help="Length of the load, 60s or more.")] = "1h",
    scenario: Annotated[
        Api | None, typer.Option(help="Which requests arrive. Default: journey.")
    ] = None,
    rate: Annotated[
        int | None,
        typer.Option(min=1, help="Arrival rate per second. Default: half of the capacity."),
    ] = None,
    target: Target = None,
    yes_load: YesLoad = None,
    as_json: Json = False,
) -> None:
    """Hold half of the capacity for a long time.

    Exit code 1 if memory, files, threads, connections, or the reference app's disk and logs, grow
    too much. The reference app needs the native engine.
    """
    from load_lab.soak import long_load, wording

    options = long_load.validate_options(duration, rate)
    subject = find_subject(
        current_engine(), target, yes_load, scenario, Api.JOURNEY, puts_data_back=True
    )
    document = long_load.run(subject, options)
    print_result(document, as_json, wording.soak)
    exit_unless_kept(document)


def exit_unless_kept(document: dict[str, Any]) -> None:
    """Exit with 1 if one of the limits of an overload or a soak was exceeded."""
    if not all(metric["kept"] for metric in document["figures"]):
        raise typer.Exit(1)
