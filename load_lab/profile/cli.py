"""`lab profile`: what is typed.

What it needs is imported when it runs: `lab --help` reads this module.
"""

from typing import Annotated

import typer

from load_lab import options
from load_lab.errors import UsageError
from load_lab.load import ApiScenario
from load_lab.load.chosen_target import find_subject
from load_lab.options import Json, current_engine, print_result, whole_seconds


def profile(
    scenario: Annotated[
        ApiScenario | None, typer.Option(help="Which requests arrive. Default: detail.")
    ] = None,
    duration: Annotated[str, typer.Option(help="Length of the recording: 1s to 10m.")] = "20s",
    rate: Annotated[
        int | None,
        typer.Option(min=1, help="Arrival rate per second. Default: as fast as it answers."),
    ] = None,
    target: options.Target = None,
    only: options.Only = None,
    after: options.AfterRun = None,
    yes_load: options.YesLoad = None,
    as_json: Json = False,
) -> None:
    """Profile a Python server under load: functions, statements, flame graph.

    --after sends one operation of a stored run alone, at its share of the rate that broke.
    """
    from load_lab.profile import wording
    from load_lab.profile.after import profile_after
    from load_lab.profile.profile import ProfileOptions
    from load_lab.profile.profile import profile as record_profile

    seconds = whole_seconds(duration, 1, 600)
    if after:
        given = {"scenario": scenario, "rate": rate, "target": target, "only": only}
        given["yes-load"] = yes_load
        for name, value in given.items():
            if value is not None:
                raise UsageError(f"--{name} is that of the run {after}. Leave it out, or --after.")
        document = profile_after(current_engine(), after, seconds)
    else:
        subject = find_subject(current_engine(), target, yes_load, scenario, ApiScenario.DETAIL)
        document = record_profile(subject, ProfileOptions(seconds, rate, only))
    print_result(document, as_json, wording.profile)
