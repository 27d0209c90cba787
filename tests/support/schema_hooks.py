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

KNOWN_IDS = json.loads(os.environ["SCHEMA_KNOWN"])
_counts: Counter[str] = Counter()


@schemathesis.hook
def before_call(ctx: Any, case: Any, kwargs: Any) -> None:
    """Change a case that the schema allows into a possible one, in half of them with existing ids.

    The schema can't express that a stay has at least one night or that a suite exists, so all
    answers would be 400 and 404.
    """
    if case.meta is None or case.meta.generation.mode != GenerationMode.POSITIVE:
        return
    rng = Random(f"{case.path_parameters} {case.body}")
    if case.path_parameters and rng.random() < 0.5:
        case.path_parameters["hotel_id"] = rng.choice(KNOWN_IDS["hotels"])
    if isinstance(case.body, dict):
        case.body |= _possible_fields(case.body)
        case.body |= _known_fields(rng) if rng.random() < 0.5 else {}


def _possible_fields(body: dict[str, Any]) -> dict[str, Any]:
    first, last = sorted([body["check_in"], body["check_out"]])
    if first == last:
        first, last = "2031-05-01", "2031-05-02"
    return {"check_in": first, "check_out": last, "customers": [*dict.fromkeys(body["customers"])]}


def _known_fields(rng: Random) -> dict[str, Any]:
    """Return an existing suite and two guests: every suite has room for two."""
    guests = rng.sample(KNOWN_IDS["customers"], 2)
    return {"suite": rng.choice(KNOWN_IDS["suites"]), "customers": guests}


@schemathesis.hook
def after_call(ctx: Any, case: Any, response: Any) -> None:
    _counts[f"{case.method} {case.operation.path} {response.status_code}"] += 1


@atexit.register
def _write_counts() -> None:
    Path(os.environ["SCHEMA_COUNTS"]).write_text(json.dumps(_counts))
