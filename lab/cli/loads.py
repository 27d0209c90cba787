"""The commands that load the running stack once and report what it sustained."""

from collections.abc import Iterator
from typing import Annotated

import typer

from lab.analysis.result import Result
from lab.analysis.windows import Bounds
from lab.cli import options
from lab.cli.options import Json, answer, engine_here
from lab.cli.output import run as output
from lab.load.k6 import Load, new_testid
from lab.profiling.profile import Wanted
from lab.profiling.profile import profile as profiled
from lab.settings import load_settings
from lab.stack.choice import choose_engine
from lab.suites.single_run import run_once


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
    measured = run_once(engine_here(), load, Bounds(p95, max_errors, min_achieved))
    answer(measured.document(), as_json, lambda _: output.run(measured))
    _exit_unless_fine(measured.result)


def profile(
    scenario: Annotated[str, typer.Option(help="detail, list, booking or journey.")] = "detail",
    seconds: Annotated[int, typer.Option(min=1, max=600, help="How long to record.")] = 20,
    rate: Annotated[
        int | None, typer.Option(min=1, help="Requests per second; at will, if left out.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Record where the backend's time goes under load, as it is set: flame graph and top ten."""
    answer(profiled(engine_here(), Wanted(scenario, seconds, rate)), as_json, output.profile)


def demo_loads() -> Iterator[Load]:
    """A smoke test, then a short ramp that the naive, uncached stack can't follow.

    One at a time, since a name has the time at which its run begins.
    """
    yield Load("smoke", testid=new_testid("smoke"))
    yield Load("breakpoint", rate=4, duration="40s", testid=new_testid("breakpoint"))


def demo(as_json: Json = False) -> None:
    """The main job: start the stack, smoke test it, find its break point, say what was found."""
    settings = load_settings()
    engine = choose_engine(settings)
    engine.up(settings)
    measured = [run_once(engine, load, Bounds()) for load in demo_loads()]
    documents = {"runs": [each.document() for each in measured]}
    answer(documents, as_json, lambda _: output.demo(measured))
    for each in measured:
        _exit_unless_fine(each.result)


# Profiles that ask for more than the target bears, on purpose.
_TO_BREAK = ("breakpoint", "spike")


def _exit_unless_fine(result: Result) -> None:
    """Anything but what is made to break it should not break.

    What could not be judged has not held.
    """
    made_to = any(name in result.profile for name in _TO_BREAK)
    broke = result.outcome == "broke" and not made_to
    if broke or result.outcome in ("failed", "unrecorded"):
        raise typer.Exit(1)
