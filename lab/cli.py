"""The `lab` command. Commands stay thin: they ask an engine or a module, and print."""

import signal
import subprocess
import sys
from typing import Annotated, Any

import typer

from lab import k6_options as options
from lab import show, show_experiment
from lab.breakpoint import Bounds
from lab.console import err, out, print_json, step
from lab.demo import demo_loads
from lab.engine import choose_engine
from lab.engine.base import Engine
from lab.errors import LabError, UsageError
from lab.experiment import command
from lab.experiment.store import Store, find_store
from lab.k6 import Load, new_testid
from lab.measure import Measured, measure
from lab.presets import preset_assignments
from lab.profiling import Wanted, profile
from lab.settings import changed, load_settings
from lab.status import stack_status

app = typer.Typer(
    help="Find out, by measuring, where a Django API breaks and what breaks first.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@app.command()
def up(as_json: Json = False) -> None:
    """Start the stack, load the data if there is none, and wait until it answers."""
    settings = load_settings()
    engine = choose_engine(settings)
    engine.up(settings)
    _print(stack_status(engine), as_json, show.status)


@app.command()
def down(as_json: Json = False) -> None:
    """Stop everything that `lab up` started; the data stays."""
    engine = _engine()
    engine.down()
    _print({"engine": engine.name, "state": "down"}, as_json, show.down)


@app.command()
def status(as_json: Json = False) -> None:
    """Show every service and the settings that are really active, asked of the services."""
    _print(stack_status(_engine()), as_json, show.status)


@app.command("set")
def set_(
    assignments: Annotated[list[str] | None, typer.Argument(metavar="NAME=VALUE…")] = None,
    preset: Annotated[str | None, typer.Option(help="article, or best; before the rest.")] = None,
    as_json: Json = False,
) -> None:
    """Change settings of the running stack, and return when they are active."""
    wanted = [*(preset_assignments(preset) if preset else []), *(assignments or [])]
    if not wanted:
        raise UsageError("Nothing to set. Write NAME=VALUE, or --preset best.")
    engine = _engine()
    settings = engine.settings()
    if settings is None:
        raise LabError("The stack is not running. Start it: lab up. Or write the setting to .env.")
    engine.apply(changed(settings, wanted))
    _print(stack_status(engine), as_json, show.status)


@app.command()
def k6(
    profile: options.Profile,
    scenario: options.Scenario = None,
    rate: options.Rate = None,
    duration: options.Duration = None,
    vus: options.VirtualUsers = None,
    route: options.Route = None,
    connections: options.Connections = None,
    retries: options.Retries = None,
    testid: options.TestId = None,
    p95: options.P95 = 1000,
    max_errors: options.MaxErrors = 0.01,
    min_achieved: options.MinAchieved = 0.95,
    as_json: Json = False,
) -> None:
    """Load the running stack with k6 and say what it bore."""
    load = Load(
        profile,
        scenario,
        *(rate, duration, vus),
        *(route, connections, retries),
        bound_ms=p95,
        testid=testid or new_testid(profile),
    )
    measured = measure(_engine(), load, Bounds(p95, max_errors, min_achieved))
    _print(measured.document, as_json, show.run)
    _exit_unless_fine(measured)


@app.command("profile")
def profile_(
    scenario: Annotated[str, typer.Option(help="detail, list, booking or journey.")] = "detail",
    seconds: Annotated[int, typer.Option(min=1, max=600, help="How long to record.")] = 20,
    rate: Annotated[
        int | None, typer.Option(min=1, help="Requests per second, not at will.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Record where the backend's time goes under load, as it is set: flame graph and top ten."""
    _print(profile(_engine(), Wanted(scenario, seconds, rate)), as_json, show.profile)


@app.command()
def demo(as_json: Json = False) -> None:
    """The main job: start the stack, smoke test it, find its break point, say what was found."""
    settings = load_settings()
    engine = choose_engine(settings)
    engine.up(settings)
    measured = [measure(engine, load, Bounds()) for load in demo_loads()]
    _print({"runs": [m.document for m in measured]}, as_json, show.demo)
    for each in measured:
        _exit_unless_fine(each)


@app.command()
def run(
    name: Annotated[str, typer.Argument(help="An experiment: a file in experiments/.")],
    dry_run: Annotated[bool, typer.Option(help="Print the cells and the time they need.")] = False,
    quick: Annotated[
        bool, typer.Option(help="Shorter loads, fewer cells: a look, no figures.")
    ] = False,
    again: Annotated[bool, typer.Option("--resume", help="Go on with the newest run.")] = False,
    repeat: Annotated[int | None, typer.Option(min=1, max=100, help="Repeats.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Cells, such as 'detail/naive/*'.")] = None,
    as_json: Json = False,
) -> None:
    """Measure every cell of an experiment, then report. It can be interrupted and resumed."""
    if again and (quick or repeat or only or dry_run):
        raise UsageError("--resume goes on as the run began; it takes no other option.")
    if again:
        _finish(name, *command.resume(_engine(), name), as_json)
        return
    plan = command.plan_of(name, only=only or [], repeats=repeat, quick=quick)
    if dry_run:
        _print(show_experiment.plan_document(plan), as_json, show_experiment.plan)
        return
    _finish(name, *command.start(_engine(), plan), as_json)


def _finish(name: str, store: Store, failures: list[str], as_json: bool) -> None:
    """The report first: the cells that were measured count, whatever became of the others."""
    _report(store, as_json)
    if failures:
        raise LabError(
            f"{len(failures)} cells failed:\n" + "\n".join(failures) + "\nThe others are measured. "
            f"Try these again: lab run {name} --resume"
        )


@app.command()
def report(
    name: Annotated[str | None, typer.Argument(help="A run, or an experiment's newest.")] = None,
    as_json: Json = False,
) -> None:
    """Turn a stored run into a page, Markdown and pictures; measures nothing."""
    _report(find_store(name), as_json)


def _report(store: Store, as_json: bool) -> None:
    # Altair takes half a second to import, which every other command would pay.
    from lab.experiment.reporting import report_of

    with step("Drawing the report"):
        document = report_of(store)
    _print(document, as_json, show_experiment.report)


@app.command()
def logs(
    service: Annotated[str, typer.Argument(help="A service of `lab status`.")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on printing.")] = False,
) -> None:
    """Print the end of a service's log."""
    subprocess.run(_engine().logs(service, follow), check=False)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def manage(context: typer.Context) -> None:
    """Run a command of Django's manage.py in the running stack, such as table_sizes --json."""
    done = _engine().exec("backend", ["python", "manage.py", *context.args])
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    raise typer.Exit(done.returncode)


def _engine() -> Engine:
    """The engine of the running stack, or the one that would be started."""
    return choose_engine(load_settings())


def _print(document: dict[str, Any], as_json: bool, readable: Any) -> None:
    if as_json:
        print_json(show.compact(document))
    else:
        out.print(readable(document))


def _exit_unless_fine(measured: Measured) -> None:
    """A break point is what `breakpoint` is for; anything else should not break.

    What could not be judged has not held.
    """
    broke = measured.verdict.outcome == "broke" and "breakpoint" not in measured.document["profile"]
    if broke or measured.verdict.outcome in ("failed", "unrecorded"):
        raise typer.Exit(1)


def main() -> None:
    """Run the command; every error of ours ends in one message and its exit code."""
    # A shell lets its background jobs ignore Ctrl-C; k6 hears of it through us alone.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        app()
    except LabError as error:
        err.print(f"[red]error:[/red] {show.escaped(error)}")
        sys.exit(error.exit_code)
    except OSError as error:
        err.print(f"[red]error:[/red] {show.escaped(error)}. Check the disk and its permissions.")
        sys.exit(LabError.exit_code)
