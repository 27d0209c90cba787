"""`lab k6`: what is typed.

What it needs is imported when it runs: `lab --help` reads this module.
"""

from typing import TYPE_CHECKING

import typer

from load_lab import options
from load_lab.load import Place, Profile
from load_lab.load.chosen_target import cluster_of, loaded_target
from load_lab.options import Json, check_duration, current_engine, print_result

if TYPE_CHECKING:
    from load_lab.results.result import Result


def k6(
    profile: options.Profile,
    k6_options: options.K6Options = None,
    scenario: options.Scenario = None,
    rate: options.Rate = None,
    start_rate: options.StartRate = None,
    duration: options.Duration = None,
    vus: options.VirtualUsers = None,
    route: options.Route = None,
    connections: options.Connections = None,
    retries: options.Retries = None,
    testid: options.TestId = None,
    generators: options.Generators = 1,
    samples: options.Samples = False,
    place: options.Place = Place.HERE,
    context: options.Context = "",
    p95: options.P95 = "1s",
    errors: options.Errors = "1%",
    min_achieved: options.MinAchieved = "95%",
    early_stop: options.EarlyStop = True,
    target: options.Target = None,
    only: options.Only = None,
    speed: options.Speed = None,
    yes_load: options.YesLoad = None,
    as_json: Json = False,
) -> None:
    """Load the running stack, or a target of your own, with k6 and print the verdict.

    Exit code 0: passed, held, or broke where the profile is meant to. 1: failed or did not hold.
    """
    from load_lab.load.k6_options import validate_options
    from load_lab.load.kubernetes.sender import require_local_k6
    from load_lab.load.load import Load, new_testid
    from load_lab.metrics.windows import Bounds
    from load_lab.run import wording
    from load_lab.run.single_run import run_once
    from load_lab.stack.locks import measurement_lock

    if duration is not None:
        check_duration(duration)
    bounds = Bounds(
        1000 * options.p95_seconds(p95),
        options.share_of("--errors", errors),
        options.share_of("--min-achieved", min_achieved),
    )
    load = Load(
        profile,
        scenario,
        *(rate, duration, vus),
        *(route, connections, retries),
        bound_ms=round(bounds.p95_ms),
        start_rate=start_rate,
        only=only,
        speed=speed,
        testid=testid or new_testid(profile),
        generators=generators,
        samples=samples,
        cluster=cluster_of(place, context),
        k6_options=validate_options(k6_options or []),
    )
    engine = current_engine()
    if load.cluster:
        require_local_k6(engine, samples=samples)
    with measurement_lock(), loaded_target(engine, target, yes_load, place, scenario) as loaded:
        single_run = run_once(
            engine, loaded, load, bounds, early_stop=early_stop, accept_changes=True
        )
    print_result(single_run.document(), as_json, lambda _: wording.run(single_run))
    _exit_unless_passed(single_run.result)


# Profiles that are meant to exceed the target's limits.
_BREAK_PROFILES = (Profile.BREAKPOINT, Profile.SPIKE)


def _exit_unless_passed(result: "Result") -> None:
    """Exit with 1 for a failed run, and for one that broke though its profile is not meant to.

    A run without a record in Prometheus can't be judged, so it has not passed.
    """
    may_break = any(name in result.profile for name in _BREAK_PROFILES)
    broke = result.outcome == "broke" and not may_break
    if broke or result.outcome in ("failed", "unrecorded"):
        raise typer.Exit(1)
