"""The commands about loads from a Kubernetes cluster."""

import typer

from lab.cli import options
from lab.cli.options import Json, check_duration, current_engine

kubernetes = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Manifests for k6-operator."
)


@kubernetes.command()
def render(
    profile: options.Profile,
    k6_options: options.K6Options = None,
    scenario: options.Scenario = None,
    rate: options.Rate = None,
    start_rate: options.StartRate = None,
    duration: options.Duration = None,
    vus: options.VirtualUsers = None,
    testid: options.TestId = None,
    generators: options.Generators = 2,
    target: options.Target = None,
    only: options.Only = None,
    yes_load: options.YesLoad = None,
    as_json: Json = False,
) -> None:
    """Print the manifests of a load: lab kubernetes render breakpoint | kubectl create -f -

    The namespace and its rules: kubectl apply -k k6/kubernetes
    """
    import yaml

    from lab.cli.loads import find_loaded, require_reference_scenario
    from lab.console import note, print_json
    from lab.load.k6 import render as render_load
    from lab.load.k6_options import validate_options
    from lab.load.kubernetes.cluster import Cluster
    from lab.load.kubernetes.manifests import NAMESPACE, PUSH_LOGIN
    from lab.load.kubernetes.run import SECRET_VARIABLES
    from lab.load.kubernetes.sending import require_local_k6
    from lab.load.load import Load, new_testid
    from lab.load.workloads import Place

    if duration is not None:
        check_duration(duration)
    require_reference_scenario(target, scenario)
    load = Load(
        profile,
        scenario,
        *(rate, duration, vus),
        start_rate=start_rate,
        only=only,
        testid=testid or new_testid(profile),
        generators=generators,
        cluster=Cluster(),
        k6_options=validate_options(k6_options or []),
    )
    engine = current_engine()
    require_local_k6(engine, samples=False)
    loaded = find_loaded(engine, target, yes_load, Place.KUBERNETES)
    resources = render_load(engine, loaded, load)
    note(
        f"If the load needs variables that nobody else may read ({', '.join(SECRET_VARIABLES)}): "
        f"put them into a Secret {PUSH_LOGIN} of the namespace {NAMESPACE}."
    )
    if as_json:
        print_json({"apiVersion": "v1", "kind": "List", "items": resources})
    else:
        print(yaml.safe_dump_all(resources, sort_keys=False), end="")
