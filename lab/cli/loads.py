"""The commands that load the running stack once and say what it bore."""

from typing import Annotated

import typer

from lab.analysis.breakpoint import Bounds
from lab.analysis.measure import Measured, measure
from lab.cli import k6_options as options
from lab.cli.common import Json, answer, engine_here
from lab.cli.output import runs
from lab.demo import demo_loads
from lab.load.k6 import Load, new_testid
from lab.profiling.profile import Wanted
from lab.profiling.profile import profile as profiled
from lab.settings import load_settings
from lab.stack.choice import choose_engine


def k6(
    profile: options.Profile,
    scenario: options.Scenario = None,
    rate: options.Rate = None,
    duration: options.Duration = None,
    vus: options.VirtualUsers = None,
    route: options.Route = None,
    connections: options.Connections = None,
    retries: options.Retries = None,
    testid: options.TestId = None,
    p95: options.P95 = 1000,
    max_errors: options.MaxErrors = 0.01,
    min_achieved: options.MinAchieved = 0.95,
    as_json: Json = False,
) -> None:
    """Load the running stack with k6 and say what it bore."""
    load = Load(
        profile,
        scenario,
        *(rate, duration, vus),
        *(route, connections, retries),
        bound_ms=p95,
        testid=testid or new_testid(profile),
    )
    measured = measure(engine_here(), load, Bounds(p95, max_errors, min_achieved))
    answer(measured.document, as_json, runs.run)
    _exit_unless_fine(measured)


def profile(
    scenario: Annotated[str, typer.Option(help="detail, list, booking or journey.")] = "detail",
    seconds: Annotated[int, typer.Option(min=1, max=600, help="How long to record.")] = 20,
    rate: Annotated[
        int | None, typer.Option(min=1, help="Requests per second; at will, if left out.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Record where the backend's time goes under load, as it is set: flame graph and top ten."""
    answer(profiled(engine_here(), Wanted(scenario, seconds, rate)), as_json, runs.profile)


def demo(as_json: Json = False) -> None:
    """The main job: start the stack, smoke test it, find its break point, say what was found."""
    settings = load_settings()
    engine = choose_engine(settings)
    engine.up(settings)
    measured = [measure(engine, load, Bounds()) for load in demo_loads()]
    answer({"runs": [m.document for m in measured]}, as_json, runs.demo)
    for each in measured:
        _exit_unless_fine(each)


# Profiles that ask for more than the target bears, on purpose.
_TO_BREAK = ("breakpoint", "spike")


def _exit_unless_fine(measured: Measured) -> None:
    """Anything but what is made to break it should not break.

    What could not be judged has not held.
    """
    made_to = any(name in measured.document["profile"] for name in _TO_BREAK)
    broke = measured.verdict.outcome == "broke" and not made_to
    if broke or measured.verdict.outcome in ("failed", "unrecorded"):
        raise typer.Exit(1)
