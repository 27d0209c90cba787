"""The commands that answer a fixed question with their exit code.

Each command imports what it needs when it runs: `lab --help` reads this module, not the suites.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from lab.cli.loads import require_reference_scenario
from lab.cli.options import (
    ApiScenario,
    Generators,
    Json,
    Quick,
    Repeats,
    Target,
    YesLoad,
    current_engine,
    print_result,
    seconds_of,
    share_of,
    whole_seconds,
)
from lab.errors import UsageError
from lab.load import ApiScenario as Api


def bench(
    only: Annotated[list[str] | None, typer.Option(help="Rows to measure: detail-fast, …")] = None,
    repeat: Repeats = None,
    duration: Annotated[
        str | None, typer.Option(help="Length of each load, up to 10m. Default: 5s; quick: 2s.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer and shorter loads, lower limits: before a merge.")
    ] = False,
    growth: Annotated[
        bool,
        typer.Option("--growth", help="With 10 million bookings: 15 to 25 minutes, 10 GB of disk."),
    ] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Also profile each variant with py-spy.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Measure the fast code against its targets.

    Exit code 1 if one is missed. Native engine only. Takes 15 minutes, during which the machine
    should do nothing else.
    """
    from lab.cli.output.bench import bench_table
    from lab.suites.bench import command
    from lab.suites.bench import growth as growth_suite

    if growth and (quick or only or profile):
        raise UsageError("--growth can't be combined with --quick, --only or --profile.")
    seconds = None if duration is None else whole_seconds(duration, 1, 600)
    if growth:
        document = growth_suite.run(current_engine(), repeats=repeat, seconds=seconds)
    else:
        options = command.resolve_options(
            only or [], repeats=repeat, seconds=seconds, check=quick, profile=profile
        )
        document = command.run(current_engine(), options)
    print_result(document, as_json, bench_table)
    if not command.is_reached(document):
        raise typer.Exit(1)


def calibrate(
    only: Annotated[list[str] | None, typer.Option(help="Cells to measure: queue, …")] = None,
    quick: Quick = False,
    generators: Generators = 1,
    as_json: Json = False,
) -> None:
    """Measure servers of known capacity.

    Exit code 1 if a result is too far off, 3 if the machine was too noisy to judge. Native engine
    only; takes 4 to 7 minutes.
    """
    from lab.cli.output.calibration import calibration
    from lab.suites.calibration import command

    document = command.run(current_engine(), only or [], quick=quick, generators=generators)
    print_result(document, as_json, calibration)
    if code := command.exit_code(document):
        raise typer.Exit(code)


def compare(
    a: Annotated[
        str,
        typer.Argument(
            help="A preset, settings (LAB_DETAIL=fast), a commit, . or a stored capacity."
        ),
    ],
    b: Annotated[str, typer.Argument(help="What is compared with it.")],
    scenario: Annotated[
        Api | None, typer.Option(help="Which requests arrive. Default: detail.")
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            help="No load begins later than this. Default: 6m; on docker or with --target 15m."
        ),
    ] = None,
    fail_if_slower: Annotated[
        str, typer.Option(help="From which difference on B is slower, such as 5%.")
    ] = "5%",
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit code 3 if the answer is: can't tell.")
    ] = False,
    capacity: Annotated[
        bool, typer.Option("--capacity", help="Also search the capacity of each: 5 minutes more.")
    ] = False,
    markdown: Annotated[
        Path | None, typer.Option(help="Also write Markdown to a file, for a pull request.")
    ] = None,
    target: Target = None,
    yes_load: YesLoad = None,
    as_json: Json = False,
) -> None:
    """Compare two variants: is B slower than A?

    Both run at once on the same CPUs, on docker and with --target in turns, restarted several
    times. Exit code 1 if B is slower.
    """
    from lab.cli.output import comparison as output
    from lab.report.comparison_page import add_page
    from lab.suites.comparison import command
    from lab.suites.comparison.session import CompareOptions
    from lab.suites.comparison.stored import compare_stored, find_pair
    from lab.suites.comparison.turns import find_target_variant
    from lab.suites.comparison.variants import find_variant
    from lab.targets.declared import find_allowed

    require_reference_scenario(target, scenario)
    if markdown and not markdown.parent.is_dir():
        raise UsageError(f"--markdown {markdown}: the folder does not exist. Create it first.")
    threshold = share_of("--fail-if-slower", fail_if_slower)
    if pair := find_pair(a, b):
        given = {"scenario": scenario, "budget": budget, "target": target}
        _require_none({**given, "capacity": capacity or None})
        document = compare_stored(*pair, threshold)
        print_result(document, as_json, lambda document: document["headline"])
        if markdown:
            markdown.write_text(f"**{document['headline']}**\n")
        _exit_by_verdict(document, strict=strict)
        return
    engine = current_engine()
    seconds = seconds_of("--budget", budget or command.default_budget(engine, target))
    if target:
        declared = find_allowed(target, yes_load)
        first, second = (find_target_variant(declared, text) for text in (a, b))
        options = CompareOptions(first, second, None, seconds, threshold, with_capacity=capacity)
        document = add_page(command.run_target(engine, declared, options))
    else:
        first, second = find_variant(a), find_variant(b)
        requests = scenario or Api.DETAIL
        options = CompareOptions(
            first, second, requests, seconds, threshold, with_capacity=capacity
        )
        document = add_page(command.run(engine, options))
    print_result(document, as_json, output.comparison)
    if markdown:
        markdown.write_text(output.markdown(document))
    _exit_by_verdict(document, strict=strict)


def _require_none(options: dict[str, object]) -> None:
    """Check that no option of a measurement is given."""
    for name, value in options.items():
        if value is not None:
            raise UsageError(
                f"--{name} belongs to a new measurement: omit it to compare stored capacities."
            )


def _exit_by_verdict(document: dict[str, Any], *, strict: bool) -> None:
    # A variant that differs from itself is a false alarm.
    if document["verdict"] == "slower" and not document.get("is_control"):
        raise typer.Exit(1)
    if strict and document["verdict"] == "can't tell":
        raise typer.Exit(3)


def overload(
    scenario: ApiScenario = Api.DETAIL,
    duration: Annotated[str, typer.Option(help="Length of each overload: 10s to 10m.")] = "20s",
    as_json: Json = False,
) -> None:
    """Load the stack with twice its capacity.

    Measures with LAB_SHED on and off, in 6 minutes. Exit code 1 if load shedding fails.
    """
    from lab.cli.output import endurance
    from lab.suites import overload as suite

    document = suite.run(current_engine(), scenario, whole_seconds(duration, 10, 600))
    print_result(document, as_json, endurance.overload)
    _exit_unless_passed(document)


def soak(
    duration: Annotated[str, typer.Option(help="Length of the load, 60s or more.")] = "1h",
    scenario: ApiScenario = Api.JOURNEY,
    rate: Annotated[
        int | None,
        typer.Option(min=1, help="Arrival rate per second. Default: half of the capacity."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Hold half of the capacity for a long time.

    Exit code 1 if memory, disk, connections or logs grow too much. Native engine only.
    """
    from lab.cli.output import endurance
    from lab.suites.soak import run as suite

    document = suite.run(current_engine(), suite.validate_options(scenario, duration, rate))
    print_result(document, as_json, endurance.soak)
    _exit_unless_passed(document)


def _exit_unless_passed(document: dict[str, Any]) -> None:
    if not all(metric["kept"] for metric in document["figures"]):
        raise typer.Exit(1)
