"""`lab compare`: what is typed.

What it needs is imported when it runs: `lab --help` reads this module.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from load_lab.errors import UsageError
from load_lab.load import ApiScenario
from load_lab.load.chosen_target import find_subject
from load_lab.options import (
    Json,
    Target,
    YesLoad,
    current_engine,
    print_result,
    seconds_of,
    share_of,
)


def compare(
    a: Annotated[
        str,
        typer.Argument(
            help="A preset, settings or options (workers=4), a commit, . or a stored capacity."
        ),
    ],
    b: Annotated[str, typer.Argument(help="What is compared with it.")],
    scenario: Annotated[
        ApiScenario | None, typer.Option(help="Which requests arrive. Default: detail.")
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(help="No load begins later than this. Default: 6m; in turns 15m."),
    ] = None,
    fail_if_slower: Annotated[
        str, typer.Option(help="From which difference on B is slower, such as 5%.")
    ] = "5%",
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit code 3 if the answer is: can't tell.")
    ] = False,
    capacity: Annotated[
        bool, typer.Option("--capacity", help="Also search the capacity of each: 5 minutes more.")
    ] = False,
    in_turns: Annotated[
        bool, typer.Option("--in-turns", help="Not both at once: one after the other.")
    ] = False,
    may_differ: Annotated[
        bool, typer.Option("--may-differ", help="Compare variants that answer differently.")
    ] = False,
    markdown: Annotated[
        Path | None, typer.Option(help="Also write Markdown to a file, for a pull request.")
    ] = None,
    target: Target = None,
    yes_load: YesLoad = None,
    as_json: Json = False,
) -> None:
    """Compare two variants: is B slower than A?

    Both run at once on the same CPUs, on docker in turns, restarted several times. Exit code 1 if
    B is slower.
    """
    from load_lab.compare import comparison, wording
    from load_lab.compare.blocks import CompareOptions
    from load_lab.compare.page import add_page
    from load_lab.compare.stored_capacities import compare_stored, find_pair
    from load_lab.console import note

    if markdown and not markdown.parent.is_dir():
        raise UsageError(f"--markdown {markdown}: the folder does not exist. Create it first.")
    threshold = share_of("--fail-if-slower", fail_if_slower)
    if pair := find_pair(a, b):
        given = {"scenario": scenario, "budget": budget, "target": target}
        switches = {"capacity": capacity, "in-turns": in_turns, "may-differ": may_differ}
        _require_none({**given, **{name: on or None for name, on in switches.items()}})
        document = compare_stored(*pair, threshold)
        print_result(document, as_json, lambda document: document["headline"])
        if markdown:
            markdown.write_text(wording.markdown(document))
        _exit_by_verdict(document, strict=strict)
        return
    subject = find_subject(current_engine(), target, yes_load, scenario, ApiScenario.DETAIL)
    variants = (subject.variant(a), subject.variant(b))
    at_once = not (in_turns or subject.why_in_turns)
    if subject.why_in_turns and not in_turns:
        note(f"In turns: {subject.why_in_turns}.")
    options = CompareOptions(
        *variants,
        subject.scenario,
        seconds_of("--budget", budget or comparison.default_budget(at_once=at_once)),
        threshold,
        with_capacity=capacity,
        may_differ=may_differ,
    )
    document = add_page(comparison.run(subject, options, at_once=at_once))
    print_result(document, as_json, wording.comparison)
    if markdown:
        markdown.write_text(wording.markdown(document))
    _exit_by_verdict(document, strict=strict)


def _require_none(options: dict[str, object]) -> None:
    """Check that no option of a measurement is given."""
    for name, value in options.items():
        if value is not None:
            raise UsageError(
                f"--{name} belongs to a new measurement: omit it to compare stored capacities."
            )


def _exit_by_verdict(document: dict[str, Any], *, strict: bool) -> None:
    # A variant that differs from itself is a false alarm.
    if document["verdict"] == "slower" and not document.get("is_control"):
        raise typer.Exit(1)
    if strict and document["verdict"] == "can't tell":
        raise typer.Exit(3)
