"""The commands about loads from a Kubernetes cluster."""

import typer

from load_lab import options
from load_lab.options import Json, check_duration, current_engine

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

    from load_lab.console import note, print_json
    from load_lab.load.chosen_target import find_target_of_load
    from load_lab.load.k6 import render as render_load
    from load_lab.load.k6_options import validate_options
    from load_lab.load.kubernetes.cluster import Cluster
    from load_lab.load.kubernetes.cluster_load import SECRET_VARIABLES
    from load_lab.load.kubernetes.manifests import NAMESPACE, PUSH_LOGIN
    from load_lab.load.kubernetes.sender import require_local_k6
    from load_lab.load.load import Load, new_testid
    from load_lab.load.workloads import Place

    if duration is not None:
        check_duration(duration)
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
    loaded = find_target_of_load(engine, target, yes_load, Place.KUBERNETES, scenario)
    resources = render_load(engine, loaded, load)
    note(
        f"If the load needs variables that nobody else may read ({', '.join(SECRET_VARIABLES)}): "
        f"put them into a Secret {PUSH_LOGIN} of the namespace {NAMESPACE}."
    )
    if as_json:
        print_json({"apiVersion": "v1", "kind": "List", "items": resources})
    else:
        print(yaml.safe_dump_all(resources, sort_keys=False), end="")
