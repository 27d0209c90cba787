"""The `lab` command. Commands stay thin: they ask an engine or a module, and print."""

import signal
import sys

import typer
from rich.markup import escape

from lab.cli import experiments, loads, stack, suites
from lab.console import err
from lab.errors import LabError

app = typer.Typer(
    help="Find out, by measuring, where a Django API breaks and what breaks first.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

# In the order of `lab --help`.
app.command()(stack.up)
app.command()(stack.down)
app.command()(stack.status)
app.command("set")(stack.set_)
app.command()(loads.k6)
app.command()(loads.profile)
app.command()(loads.demo)
app.command()(experiments.run)
app.command()(experiments.report)
app.command()(suites.bench)
app.command()(suites.overload)
app.command()(suites.soak)
app.command()(suites.calibrate)
app.command()(stack.logs)
_PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True}
app.command(context_settings=_PASSED_ON)(stack.manage)


def main() -> None:
    """Run the command; every error of ours ends in one message and its exit code."""
    # A shell lets its background jobs ignore Ctrl-C; k6 hears of it through us alone.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        app()
    except LabError as error:
        err.print(f"[red]error:[/red] {escape(str(error))}")
        sys.exit(error.exit_code)
    except OSError as error:
        err.print(f"[red]error:[/red] {escape(str(error))}. Check the disk and its permissions.")
        sys.exit(LabError.exit_code)
