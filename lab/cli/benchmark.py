"""The command that measures the fast path against its own limits."""

from typing import Annotated

import typer

from lab.cli.common import Json, answer, engine_here
from lab.cli.output.bench import bench_table
from lab.errors import UsageError
from lab.suites.bench import command, growth


def bench(
    only: Annotated[list[str] | None, typer.Option(help="Rows, such as detail-fast.")] = None,
    repeat: Annotated[int | None, typer.Option(min=1, max=100, help="Repeats.")] = None,
    seconds: Annotated[int | None, typer.Option(min=1, max=600, help="Of each load.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Quick, against lower floors: before a merge.")
    ] = False,
    grown: Annotated[
        bool, typer.Option("--growth", help="With 10 million bookings: 15 to 25 minutes, 10 GB.")
    ] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="And look where each way's time goes, with py-spy.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Measure the fast path against its own limits; exit code 1 when one is not reached."""
    if grown and (check or only or profile):
        raise UsageError(
            "--growth is a benchmark of its own; it takes no --check, --only or --profile."
        )
    if grown:
        document = growth.run(engine_here(), repeats=repeat, seconds=seconds)
    else:
        asked = command.asked(
            only or [], repeats=repeat, seconds=seconds, check=check, profile=profile
        )
        document = command.run(engine_here(), asked)
    answer(document, as_json, bench_table)
    if not command.is_reached(document):
        raise typer.Exit(1)
