"""What a load was to do second by second, and how it was answered."""

import json
from pathlib import Path
from typing import Any

from lab.analysis import queries
from lab.analysis.breakpoint import PUSH_SECONDS
from lab.analysis.prometheus import Prometheus
from lab.errors import LabError
from lab.load.plan import Plan, read_plan
from lab.paths import ROOT


def course(document: dict[str, Any]) -> tuple[Plan, float]:
    """The plan of a measured load, and when it began (Unix time).

    Raises:
        LabError: it has none.
    """
    lab = json.loads((ROOT / Path(document["files"]["summary"])).read_text())["lab"]
    plan = read_plan(lab)
    if plan is None:
        raise LabError(f"{document['testid']} has no course in time: {document['verdict']}")
    return plan, float(lab["started_at_seconds"])


def by_status(
    prometheus: Prometheus, testid: str, started: float, seconds: float
) -> dict[str, int]:
    """How many answers of the load had each status; `seconds` with its last answers."""
    end = started + seconds + 2 * PUSH_SECONDS
    found = prometheus.instant_by_label(queries.requests_by_status(testid), "status", end)
    return {status: round(count) for status, count in sorted(found.items())}
