"""The commands that start, stop, change and inspect the stack.

Each command imports what it needs when it runs: `lab --help` reads this module, not the stack's.
"""

import subprocess
import sys
from typing import Annotated

import typer

from lab.cli.options import Json, Preset, current_engine, print_result
from lab.errors import LabError, UsageError


def up(as_json: Json = False) -> None:
    """Start the stack, load its data, and wait until it is ready."""
    from lab.cli.output import stack as output
    from lab.settings import load_settings
    from lab.stack.choice import choose_engine
    from lab.stack.status import stack_status

    settings = load_settings()
    engine = choose_engine(settings)
    engine.up(settings)
    print_result(stack_status(engine), as_json, output.status)


def down(as_json: Json = False) -> None:
    """Stop the stack; its data stays."""
    from lab.cli.output import stack as output

    engine = current_engine()
    engine.down()
    print_result({"engine": engine.name, "state": "down"}, as_json, output.down)


def status(as_json: Json = False) -> None:
    """Show every service, and the settings that are active."""
    from lab.cli.output import stack as output
    from lab.stack.status import stack_status

    print_result(stack_status(current_engine()), as_json, output.status)


def set_(
    assignments: Annotated[list[str] | None, typer.Argument(metavar="NAME=VALUE…")] = None,
    preset: Annotated[
        Preset | None, typer.Option(help="A set of settings, applied before NAME=VALUE.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Change settings of the running stack.

    Returns once they are active. Settings: .env.example.
    """
    from lab.cli.output import stack as output
    from lab.settings import load_settings, update_settings
    from lab.settings.presets import preset_assignments
    from lab.stack.status import stack_status

    changes = [*(preset_assignments(preset) if preset else []), *(assignments or [])]
    if not changes:
        raise UsageError("Nothing to set. Write NAME=VALUE, or --preset best.")
    engine = current_engine()
    settings = engine.settings()
    if settings is None:
        # A wrong name or value is the more useful message.
        update_settings(load_settings(), changes)
        raise LabError("The stack is not running. Start it: lab up. Or write the setting to .env.")
    engine.apply(update_settings(settings, changes))
    print_result(stack_status(engine), as_json, output.status)


def logs(
    service: Annotated[str, typer.Argument(help="A service of `lab status`.")],
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep printing new lines.")
    ] = False,
) -> None:
    """Print the end of a service's log."""
    subprocess.run(current_engine().logs(service, follow), check=False)


def manage(context: typer.Context) -> None:
    """Run a Django management command in the stack.

    For example: lab manage table_sizes --json
    """
    process = current_engine().exec("backend", ["python", "manage.py", *context.args])
    sys.stdout.write(process.stdout)
    sys.stderr.write(process.stderr)
    raise typer.Exit(process.returncode)
