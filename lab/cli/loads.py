"""The commands that load the running stack once and print the result.

Each command imports what it needs when it runs: `lab --help` reads this module, not k6's.
"""

import os
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from lab.cli import options
from lab.cli.options import Json, check_duration, current_engine, print_result, whole_seconds
from lab.errors import LabError, UsageError
from lab.load import ApiScenario, Place, Profile, Scenario

if TYPE_CHECKING:
    from lab.analysis.result import Result
    from lab.load.kubernetes.cluster import Cluster
    from lab.stack.engine import Engine
    from lab.targets.declared import DeclaredTarget
    from lab.targets.reference.app import ReferenceApp
    from lab.targets.target import Target


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
    p95: options.P95 = 1000,
    max_errors: options.MaxErrors = 0.01,
    min_achieved: options.MinAchieved = 0.95,
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
    from lab.analysis.windows import Bounds
    from lab.cli.output import run as output
    from lab.load.k6_options import validate_options
    from lab.load.kubernetes.sending import require_local_k6
    from lab.load.load import Load, new_testid
    from lab.stack.locks import measurement_lock
    from lab.suites.single_run import run_once

    if duration is not None:
        check_duration(duration)
    require_reference_scenario(target, scenario)
    load = Load(
        profile,
        scenario,
        *(rate, duration, vus),
        *(route, connections, retries),
        bound_ms=p95,
        start_rate=start_rate,
        only=only,
        speed=speed,
        testid=testid or new_testid(profile),
        generators=generators,
        samples=samples,
        cluster=_cluster(place, context),
        k6_options=validate_options(k6_options or []),
    )
    bounds = Bounds(p95, max_errors, min_achieved)
    engine = current_engine()
    if load.cluster:
        require_local_k6(engine, samples=samples)
    with measurement_lock(), _loaded(engine, target, yes_load, place) as loaded:
        single_run = run_once(engine, loaded, load, bounds, early_stop=early_stop)
    print_result(single_run.document(), as_json, lambda _: output.run(single_run))
    _exit_unless_passed(single_run.result)


def capacity(
    scenario: Annotated[
        ApiScenario | None, typer.Option(help="Which requests arrive. Default: detail.")
    ] = None,
    p95: options.SloP95 = "1s",
    errors: options.SloErrors = "1%",
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
    from lab.analysis.capacity.course import Slo
    from lab.cli.output import capacity as output
    from lab.settings import load_settings
    from lab.stack.locks import measurement_lock
    from lab.suites.capacity import command

    require_reference_scenario(target, scenario)
    search = command.CapacityOptions(
        Slo(options.seconds_of("--p95", p95), options.share_of("--errors", errors)),
        None if target else scenario or ApiScenario.DETAIL,
        only,
        options.seconds_of("--budget", budget),
        options.share_of("--precision", precision),
    )
    engine = current_engine()
    # Before a target is started, which can take minutes.
    command.validate_options(search, engine.settings() or load_settings())
    with measurement_lock(), _loaded(engine, target, yes_load, Place.HERE) as loaded:
        document = command.run(engine, loaded, search)
    print_result(document, as_json, output.capacity)
    if document["outcome"] != "confirmed":
        raise typer.Exit(1)


def require_reference_scenario(target: str | None, scenario: StrEnum | None) -> None:
    """Check that the load of a target of the user's own has no scenario of the reference app.

    Raises:
        UsageError: it has.
    """
    if target and scenario not in (None, Scenario.REPLAY):
        raise UsageError(
            f"--scenario {scenario} is one of the reference app. Leave it out: a target's "
            "requests come from its mix; --only selects some."
        )


def _cluster(place: Place, context: str) -> "Cluster | None":
    from lab.load.kubernetes.cluster import Cluster

    if place == Place.KUBERNETES:
        return Cluster(context)
    if context:
        raise UsageError(f"--context {context} is for --on kubernetes. Leave it out, or add that.")
    return None


def _loaded(
    engine: "Engine", name: str | None, allowed_host: str | None, place: Place
) -> "AbstractContextManager[Target]":
    """Return what is loaded, started if its file says how."""
    from lab.stack.engine import settings_of
    from lab.targets.reference.app import ReferenceApp
    from lab.targets.starting import ready

    target = find_loaded(engine, name, allowed_host, place)
    if isinstance(target, ReferenceApp):
        return nullcontext(target)
    if engine.settings() is None:
        raise LabError(f"Prometheus is not running. Start it: lab up --target {name}")
    return ready(target, settings_of(engine))


def find_loaded(
    engine: "Engine", name: str | None, allowed_host: str | None, place: Place
) -> "DeclaredTarget | ReferenceApp":
    """Return the target of that name, or the reference app, which a cluster reaches at another
    address (BASE_URL).

    Raises:
        UsageError: there is no such target, or its host may not be loaded.
    """
    from lab.targets.declared import find_allowed, require_allowed
    from lab.targets.reference.app import ReferenceApp

    if name is not None:
        target = find_allowed(name, allowed_host)
        _require_own_url(target.url)
        return target
    address = os.environ.get("BASE_URL", "") if place == Place.KUBERNETES else ""
    app = ReferenceApp(engine, address=address.rstrip("/"))
    _require_own_url(app.url)
    require_allowed(app.url, allowed_host)
    return app


def _require_own_url(url: str) -> None:
    """Reject the address of another server in the shell: k6's script reads it, the lab does not.

    Raises:
        UsageError: BASE_URL is set to it.
    """
    other = os.environ.get("BASE_URL", "").rstrip("/")
    if other and other != url:
        raise UsageError(
            f"BASE_URL={other} is set, but this command loads {url}. Remove it: unset BASE_URL. To "
            f"load that server: lab target add NAME {other}"
        )


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
    from lab.cli.output import run as output
    from lab.profiling.profile import ProfileOptions
    from lab.profiling.profile import profile as record_profile
    from lab.stack.locks import measurement_lock

    profile_options = ProfileOptions(scenario, whole_seconds(duration, 1, 600), rate)
    with measurement_lock():
        document = record_profile(current_engine(), profile_options)
    print_result(document, as_json, output.profile)


def demo(as_json: Json = False) -> None:
    """Start the stack and break it three ways (4 minutes).

    One page with nested serializers, with quick code, and behind the Nginx cache: each is loaded
    until it breaks. Ends with a table and a chart; the stack keeps running.
    """
    from lab.cli.output import demo as output
    from lab.settings import load_settings
    from lab.stack.choice import choose_engine
    from lab.stack.locks import require_no_measurement
    from lab.suites.demo import run as run_demo

    require_no_measurement()
    settings = load_settings()
    print_result(run_demo(choose_engine(settings), settings), as_json, output.demo)


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
