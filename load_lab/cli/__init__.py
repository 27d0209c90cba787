"""The `lab` command: joins the commands of the rooms, and has those without a room."""

import errno
import locale
import os
import signal
import sys
from io import TextIOWrapper
from pathlib import Path
from shutil import disk_usage
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from load_lab import __version__
from load_lab.bench.cli import bench
from load_lab.calibrate.cli import calibrate
from load_lab.capacity.cli import capacity
from load_lab.cli import kubernetes, results, stack, targets
from load_lab.compare.cli import compare
from load_lab.demo.cli import demo
from load_lab.errors import LabError, UsageError
from load_lab.experiments.cli import run
from load_lab.explain.cli import explain
from load_lab.interrupts import SIGNALS, interruptible
from load_lab.overload.cli import overload
from load_lab.profile.cli import profile
from load_lab.run.cli import k6
from load_lab.soak.cli import soak


class Commands(TyperGroup):
    """The commands, which Ctrl-C, TERM and HUP end with a message."""

    def invoke(self, context: Any) -> Any:
        with interruptible():
            return super().invoke(context)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    # Rich's help costs as much CPU as all the rest of `lab --help`, and folds the names of values.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"lab {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
    project: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The folder of your targets and results. Default: LAB_PROJECT, or the nearest one "
            "with targets/ or .lab/, or the lab's own.",
        ),
    ] = None,
) -> None:
    """Find out, by measuring, where a Django API breaks and what breaks first."""
    if project is not None:
        # For the processes that the lab starts, too.
        os.environ["LAB_PROJECT"] = str(project.absolute())


# In the order of `lab --help`.
app.command()(stack.up)
app.command()(stack.down)
app.command()(stack.status)
app.command("set")(stack.set_)
app.command()(k6)
app.command()(capacity)
app.add_typer(targets.target, name="target")
app.add_typer(targets.mix, name="mix")
app.add_typer(kubernetes.kubernetes, name="kubernetes")
app.command()(profile)
app.command()(demo)
app.command()(run)
app.command("list")(results.list_)
app.command()(results.show)
app.command()(explain)
app.command()(results.report)
app.command()(compare)
app.command()(bench)
app.command()(overload)
app.command()(soak)
app.command()(calibrate)
app.command()(stack.logs)
_PASS_ARGUMENTS = {"allow_extra_args": True, "ignore_unknown_options": True}
app.command(context_settings=_PASS_ARGUMENTS)(stack.manage)


_NOT_PERMITTED = (errno.EACCES, errno.EPERM, errno.EROFS)


def main() -> None:
    """Run the command; print each LabError as one message, and exit with its code."""
    _use_utf8()
    _prepare_streams()
    # A shell lets its background jobs ignore Ctrl-C, and k6 gets it from us alone.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        app()
    except LabError as error:
        _exit(str(error), error.exit_code)
    except OSError as error:
        kind = UsageError if error.errno in _NOT_PERMITTED else LabError
        _exit(_disk_message(error), kind.exit_code)


def _disk_message(error: OSError) -> str:
    """Say what failed; for a full disk with the free space, since a failed write names no file."""
    from load_lab.paths import current_state, project

    if error.errno in _NOT_PERMITTED:
        return (
            f"{error}. The lab writes into your project, {project().folder}: change its "
            "permissions, or name another folder: lab --project DIR …"
        )
    if error.errno != errno.ENOSPC:
        return f"{error}. Check the disk."
    folders = [folder for folder in (project().results, current_state().base) if folder.exists()]
    free = [f"{disk_usage(folder).free / 1e9:.2f} GB at {folder}" for folder in folders]
    return f"{error}. Free: {', '.join(free)}. Make room, and run the command again."


def _use_utf8() -> None:
    """Start Python again in UTF-8 mode where the locale has another encoding: files are UTF-8."""
    if sys.flags.utf8_mode or locale.getencoding().lower() in ("utf-8", "utf8"):
        return
    # For the processes that the lab starts.
    os.environ["PYTHONUTF8"] = "1"
    os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606


def _prepare_streams() -> None:
    """Replace closed standard streams, and let no character end the command."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # The lowest free descriptor, so that no socket gets the stream's.
            stream = open(os.devnull, mode)  # noqa: PTH123, SIM115
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _exit(error: str, code: int) -> NoReturn:
    from rich.markup import escape

    from load_lab.console import err

    # A second Ctrl-C would end it with another exit code.
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    err.print(f"[red]error:[/red] {escape(error)}")
    sys.exit(code)
