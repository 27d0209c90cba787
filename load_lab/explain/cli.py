"""`lab explain`: what is typed.

What it needs is imported when it runs: `lab --help` reads this module.
"""

from typing import Annotated

import typer

from load_lab import options
from load_lab.options import Json, print_result


def explain(
    name: options.RunOrCell,
    prove: Annotated[
        bool, typer.Option("--prove", help="Change the named part, and measure: 3 minutes.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say what limited a stored run, with the evidence.

    --prove gives the named part more, or takes some away, and compares the throughput.
    """
    from load_lab.diagnosis import wording
    from load_lab.explain.explanation import explanation, find_load
    from load_lab.explain.proof import prove_cause

    load = find_load(name)
    document = explanation(load)
    if prove:
        document["proof"] = prove_cause(options.current_engine(), load)
    print_result(document, as_json, wording.explanation)
