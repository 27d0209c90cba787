"""`lab profile`: what is typed.

What it needs is imported when it runs: `lab --help` reads this module.
"""

from typing import Annotated

import typer

from load_lab import options
from load_lab.load import ApiScenario
from load_lab.options import Json, current_engine, print_result, whole_seconds


def profile(
    scenario: options.ApiScenario = ApiScenario.DETAIL,
    duration: Annotated[str, typer.Option(help="Length of the recording: 1s to 10m.")] = "20s",
    rate: Annotated[
        int | None,
        typer.Option(min=1, help="Arrival rate per second. Default: as fast as it answers."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Profile the backend under load: flame graph, top ten."""
    from load_lab.profile import wording
    from load_lab.profile.profile import ProfileOptions
    from load_lab.profile.profile import profile as record_profile
    from load_lab.stack.locks import measurement_lock

    profile_options = ProfileOptions(scenario, whole_seconds(duration, 1, 600), rate)
    with measurement_lock():
        document = record_profile(current_engine(), profile_options)
    print_result(document, as_json, wording.profile)
