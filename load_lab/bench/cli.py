"""`lab bench`: what is typed.

What it needs is imported when it runs: `lab --help` reads this module.
"""

from typing import Annotated

import typer

from load_lab.errors import UsageError
from load_lab.options import Json, Repeats, current_engine, print_result, whole_seconds


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
    from load_lab.bench import benchmark
    from load_lab.bench import growth as growth_suite
    from load_lab.bench.wording import bench_table

    if growth and (quick or only or profile):
        raise UsageError("--growth can't be combined with --quick, --only or --profile.")
    seconds = None if duration is None else whole_seconds(duration, 1, 600)
    if growth:
        document = growth_suite.run(current_engine(), repeats=repeat, seconds=seconds)
    else:
        options = benchmark.resolve_options(
            only or [], repeats=repeat, seconds=seconds, check=quick, profile=profile
        )
        document = benchmark.run(current_engine(), options)
    print_result(document, as_json, bench_table)
    if not benchmark.is_reached(document):
        raise typer.Exit(1)
