"""Hooks of schemathesis (schema_cases.py): insert existing ids, and count the answers."""

import atexit
import json
import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import schemathesis
from schemathesis import GenerationMode

KNOWN = json.loads(os.environ["SCHEMA_KNOWN"])
_seen: Counter[str] = Counter()


@schemathesis.hook
def before_call(ctx: Any, case: Any, kwargs: Any) -> None:
    """Change a case that the schema allows into a possible one, in half of them with existing ids.

    The schema can't express that a stay has at least one night or that a suite exists, so all
    answers would be 400 and 404.
    """
    if case.meta is None or case.meta.generation.mode != GenerationMode.POSITIVE:
        return
    chance = Random(f"{case.path_parameters} {case.body}")
    if case.path_parameters and chance.random() < 0.5:
        case.path_parameters["hotel_id"] = chance.choice(KNOWN["hotels"])
    if isinstance(case.body, dict):
        case.body |= _possible(case.body)
        case.body |= _known(chance) if chance.random() < 0.5 else {}


def _possible(body: dict[str, Any]) -> dict[str, Any]:
    first, last = sorted([body["check_in"], body["check_out"]])
    if first == last:
        first, last = "2031-05-01", "2031-05-02"
    return {"check_in": first, "check_out": last, "customers": [*dict.fromkeys(body["customers"])]}


def _known(chance: Random) -> dict[str, Any]:
    """Return an existing suite and two guests: every suite has room for two."""
    guests = chance.sample(KNOWN["customers"], 2)
    return {"suite": chance.choice(KNOWN["suites"]), "customers": guests}


@schemathesis.hook
def after_call(ctx: Any, case: Any, response: Any) -> None:
    _seen[f"{case.method} {case.operation.path} {response.status_code}"] += 1


@atexit.register
def _write() -> None:
    Path(os.environ["SCHEMA_COUNTS"]).write_text(json.dumps(_seen))
