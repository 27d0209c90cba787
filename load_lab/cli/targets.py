"""The commands about targets of the user's own, and the mixes of requests that load them.

Each command imports what it needs when it runs: `lab --help` reads this module, not the sources.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from load_lab.errors import LabError, UsageError
from load_lab.options import Json, YesLoad, print_result

if TYPE_CHECKING:
    from load_lab.targets.making import Plan, Source

target = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Targets of your own.")
mix = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Mixes of their requests.")

Name = Annotated[str, typer.Argument(help="A target (lab list targets), or the path of its file.")]


@target.command()
def add(
    name: Annotated[str, typer.Argument(help="Its name: letters, digits, dashes.")],
    url: Annotated[str, typer.Argument(help="Its address: http://127.0.0.1:8000")],
    openapi: Annotated[
        str | None, typer.Option(help="Path, address or file of its OpenAPI document.")
    ] = None,
    manage: Annotated[
        str | None, typer.Option(help="How its routes are read: 'venv/bin/python manage.py'.")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option(help="A header: 'Authorization: Token ${SHOP_TOKEN}'.")
    ] = None,
    ready: Annotated[
        str | None, typer.Option(help="A path that answers 200 when it is ready.")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the file.")] = False,
    as_json: Json = False,
) -> None:
    """Write targets/NAME.toml for an app that runs, once it answers."""
    from load_lab.cli import targets_wording as output
    from load_lab.targets.adding import add_target

    values = {"url": url, "ready": ready, "openapi": openapi}
    document = {key: value for key, value in values.items() if value is not None}
    if manage:
        document["manage"] = manage.split()  # type: ignore[assignment]
    added = add_target(name, document, header or [], replace=replace)
    print_result({"target": name, "file": str(added)}, as_json, output.added)


@mix.command()
def make(
    name: Name,
    log: Annotated[Path | None, typer.Option(help="From an access log.")] = None,
    har: Annotated[Path | None, typer.Option(help="From a browser's HAR file.")] = None,
    routes: Annotated[bool, typer.Option("--routes", help="From Django's routes.")] = False,
    keep_times: Annotated[
        bool, typer.Option("--keep-times", help="Keep the log's times, for the profile times.")
    ] = False,
    most: Annotated[int, typer.Option(min=1, max=1000, help="Addresses per operation.")] = 20,
    seed: Annotated[int, typer.Option(help="Of the choice of addresses.")] = 0,
    allow: Annotated[
        list[str] | None,
        typer.Option(help="An operation to include although its name says that it writes."),
    ] = None,
    leave_out: Annotated[
        list[str] | None, typer.Option(help="An operation that must not be sent.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List what would be sent, and send nothing.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Send what Django's routes have without a question.")
    ] = False,
    untried: Annotated[
        bool,
        typer.Option(
            "--untried", help="Do not send what a log or HAR file has: the target is not here."
        ),
    ] = False,
    yes_load: YesLoad = None,
    as_json: Json = False,
) -> None:
    """Find the requests that a target answers, and write them to its mix.

    By default from its OpenAPI document, else from Django's routes (--manage of `lab target add`).
    """
    from load_lab.cli import targets_wording as output
    from load_lab.targets.making import MixOptions, make_mix, plan_mix

    source = _source(log, har, routes)
    names = (tuple(allow or ()), tuple(leave_out or ()))
    options = MixOptions(source, log or har, most, seed, *names, keep_times, untried)
    if dry_run:
        print_result(plan_mix(name, options, yes_load).document(), as_json, output.plan)
        return
    approve = (lambda _: None) if yes else _approve
    made = make_mix(name, options, approve, yes_load)
    print_result(made.document(), as_json, output.mix)


def _approve(plan: "Plan") -> None:
    """List the requests, and ask whether they may be sent.

    Raises:
        UsageError: there is no terminal to ask.
        LabError: the answer is no.
    """
    from load_lab.cli import targets_wording as output
    from load_lab.console import err

    err.print(output.plan(plan.document()))
    if not sys.stdin.isatty():
        raise UsageError(
            "These GET requests come from Django's routes, and are sent with your credentials. "
            "Check that none of them acts; then add --yes. To leave one out: --leave-out NAME."
        )
    if not typer.confirm("Send these requests with your credentials?", err=True):
        raise LabError("Nothing was sent, and no mix was written.")


def _source(log: Path | None, har: Path | None, routes: bool) -> "Source | None":
    """Return the named source; None: the target file's.

    Raises:
        UsageError: several are named.
    """
    values: dict[Source, object] = {"log": log, "har": har, "routes": routes}
    named = [name for name, value in values.items() if value]
    if len(named) > 1:
        raise UsageError(f"--{' and --'.join(named)}: name one source.")
    return named[0] if named else None
