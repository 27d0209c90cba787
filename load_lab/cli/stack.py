"""The commands that start, stop, change and inspect the stack.

Each command imports what it needs when it runs: `lab --help` reads this module, not the stack's.
"""

import subprocess
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from load_lab.errors import LabError, UsageError
from load_lab.options import Json, Preset, Target, current_engine, print_result

if TYPE_CHECKING:
    from load_lab.metrics.missing_series import MissingSeries
    from load_lab.stack.engine import Engine


def up(target: Target = None, as_json: Json = False) -> None:
    """Start the stack, load its data, and wait until it is ready.

    With --target only what measures is started, once that target answers.
    """
    from load_lab.cli import stack_wording as output
    from load_lab.metrics.missing_series import wait_for_series
    from load_lab.stack.choice import choose_engine
    from load_lab.stack.exclusive import start_settings
    from load_lab.stack.locks import change_lock, require_no_measurement
    from load_lab.stack.reported import wait_for_api

    settings = start_settings(reference_app=target is None)
    if target:
        _require_startable(target)
    with change_lock():
        require_no_measurement()
        engine = choose_engine(settings)
        _stop_load(engine)
        _end_left()
        engine.up(settings)
    wait_for_api(settings)
    missing = wait_for_series(engine.services(), settings)
    print_result(_document(engine, missing), as_json, output.status)
    if missing.cpu or missing.memory:
        raise LabError(f"The stack runs, but is not measured whole. {missing.text}")


def _require_startable(name: str) -> None:
    """Check that the target is ready, unless the lab starts it for each load."""
    from load_lab.targets.declared import find_target

    target = find_target(name)
    if target.file.start is None:
        target.require_ready()


def _document(engine: "Engine", missing: "MissingSeries") -> dict[str, Any]:
    from load_lab.stack.native.ended import find_left
    from load_lab.stack.status import stack_status

    return stack_status(engine) | {
        "missing_series": asdict(missing) | {"text": missing.text},
        "left": [asdict(each) for each in find_left()],
    }


def _stop_load(engine: "Engine") -> None:
    """Stop the load that a killed `lab` left, and report it."""
    from load_lab.console import note

    if engine.stop_load():
        note("Stopped the load that a killed `lab` had left running.")


def _end_left() -> None:
    """End what killed commands left, and report it with its data."""
    from load_lab.cli.stack_wording import left_text
    from load_lab.console import note
    from load_lab.stack.native.ended import end_left

    for each in end_left():
        if each.processes and not each.is_running:
            note(f"Ended what a killed command had left: {left_text(asdict(each))}.")


def down(
    data: Annotated[
        bool,
        typer.Option(
            "--data", help="Also remove the data of stacks that commands started for themselves."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Stop the stack; its data stays.

    Also ends what killed commands have left (lab status), never what a running one has.
    """
    from load_lab.cli import stack_wording as output
    from load_lab.stack.locks import change_lock
    from load_lab.stack.native.ended import end_left

    with change_lock():
        engine = current_engine()
        left = [asdict(each) for each in end_left(data=data)]
        engine.down()
    document = {"engine": engine.name, "state": "down", "left": left, "data_removed": data}
    print_result(document, as_json, output.down)


def status(as_json: Json = False) -> None:
    """Show every service, and the settings that are active."""
    from load_lab.cli import stack_wording as output
    from load_lab.metrics.missing_series import MissingSeries, find_missing_series

    engine = current_engine()
    settings = engine.settings()
    missing = find_missing_series(engine.services(), settings) if settings else None
    print_result(_document(engine, missing or MissingSeries()), as_json, output.status)


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
    from load_lab.cli import stack_wording as output
    from load_lab.settings import load_settings, update_settings
    from load_lab.settings.presets import preset_assignments
    from load_lab.stack.locks import change_lock
    from load_lab.stack.status import stack_status

    changes = [*(preset_assignments(preset) if preset else []), *(assignments or [])]
    if not changes:
        raise UsageError("Nothing to set. Write NAME=VALUE, or --preset best.")
    with change_lock():
        engine = current_engine()
        settings = engine.settings()
        if settings is None:
            # A wrong name or value is the more useful message.
            update_settings(load_settings(), changes)
            raise LabError(
                "The stack is not running. Start it: lab up. Or write the setting to .env."
            )
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
