"""What every module of commands uses."""

from typing import Annotated, Any

import typer

from lab.cli.output import runs
from lab.console import out, print_json
from lab.settings import load_settings
from lab.stack.choice import choose_engine
from lab.stack.engine import Engine

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def engine_here() -> Engine:
    """The engine of the running stack, or the one that would be started."""
    return choose_engine(load_settings())


def answer(document: dict[str, Any], as_json: bool, readable: Any) -> None:
    """The result on standard output: one JSON document, or what `readable` makes of it."""
    if as_json:
        print_json(runs.compact(document))
    else:
        out.print(readable(document))
