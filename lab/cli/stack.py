"""The commands that start, stop and change the stack, and look into it."""

import subprocess
import sys
from typing import Annotated

import typer

from lab.cli.options import Json, answer, engine_here
from lab.cli.output import stack as output
from lab.errors import LabError, UsageError
from lab.settings import changed, load_settings
from lab.settings.presets import preset_assignments
from lab.stack.choice import choose_engine
from lab.stack.status import stack_status


def up(as_json: Json = False) -> None:
    """Start the stack, load the data if there is none, and wait until it answers."""
    settings = load_settings()
    engine = choose_engine(settings)
    engine.up(settings)
    answer(stack_status(engine), as_json, output.status)


def down(as_json: Json = False) -> None:
    """Stop everything that `lab up` started; the data stays."""
    engine = engine_here()
    engine.down()
    answer({"engine": engine.name, "state": "down"}, as_json, output.down)


def status(as_json: Json = False) -> None:
    """Show every service and the settings that are really active, asked of the services."""
    answer(stack_status(engine_here()), as_json, output.status)


def set_(
    assignments: Annotated[list[str] | None, typer.Argument(metavar="NAME=VALUE…")] = None,
    preset: Annotated[str | None, typer.Option(help="article, or best; before the rest.")] = None,
    as_json: Json = False,
) -> None:
    """Change settings of the running stack, and return when they are active."""
    wanted = [*(preset_assignments(preset) if preset else []), *(assignments or [])]
    if not wanted:
        raise UsageError("Nothing to set. Write NAME=VALUE, or --preset best.")
    engine = engine_here()
    settings = engine.settings()
    if settings is None:
        raise LabError("The stack is not running. Start it: lab up. Or write the setting to .env.")
    engine.apply(changed(settings, wanted))
    answer(stack_status(engine), as_json, output.status)


def logs(
    service: Annotated[str, typer.Argument(help="A service of `lab status`.")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on printing.")] = False,
) -> None:
    """Print the end of a service's log."""
    subprocess.run(engine_here().logs(service, follow), check=False)


def manage(context: typer.Context) -> None:
    """Run a command of Django's manage.py in the running stack, such as table_sizes --json."""
    done = engine_here().exec("backend", ["python", "manage.py", *context.args])
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    raise typer.Exit(done.returncode)
