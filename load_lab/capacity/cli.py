"""`lab capacity`: what is typed.

What it needs is imported when it runs: `lab --help` reads this module.
"""

from typing import Annotated

import typer

from load_lab import options
from load_lab.load import ApiScenario, Place
from load_lab.load.chosen_target import loaded_target
from load_lab.options import Json, current_engine, print_result


def capacity(
    scenario: Annotated[
        ApiScenario | None, typer.Option(help="Which requests arrive. Default: detail.")
    ] = None,
    p95: options.P95 = "1s",
    errors: options.Errors = "1%",
    budget: options.Budget = "4m",
    precision: options.Precision = "5%",
    target: options.Target = None,
    only: options.Only = None,
    yes_load: options.YesLoad = None,
    as_json: Json = False,
) -> None:
    """Search the highest arrival rate within an SLO, and confirm it.

    A hold just below it passes, one just above it fails. Exit code 1: not confirmed, or no rate
    meets the SLO.
    """
    from load_lab.capacity import measurement, wording
    from load_lab.capacity.timeline import Slo
    from load_lab.settings import load_settings
    from load_lab.stack.locks import measurement_lock

    search = measurement.CapacityOptions(
        Slo(options.p95_seconds(p95), options.share_of("--errors", errors)),
        None if target else scenario or ApiScenario.DETAIL,
        only,
        options.seconds_of("--budget", budget),
        options.share_of("--precision", precision),
    )
    engine = current_engine()
    # Before a target is started, which can take minutes.
    measurement.validate_options(search, engine.settings() or load_settings())
    with (
        measurement_lock(),
        loaded_target(engine, target, yes_load, Place.HERE, scenario) as loaded,
    ):
        document = measurement.run(engine, loaded, search)
    print_result(document, as_json, wording.capacity)
    if document["outcome"] != "confirmed":
        raise typer.Exit(1)
