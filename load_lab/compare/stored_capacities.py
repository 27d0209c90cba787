"""Two stored capacities compared: results/capacity-…, of the same machine."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from load_lab.compare.ratios import Verdict, judge
from load_lab.errors import UsageError
from load_lab.paths import project
from load_lab.results.formatting import rate
from load_lab.results.provenance import read_json, relative, require_format
from load_lab.results.ratio import Ratio

_NAME = re.compile(r"capacity-\d{8}-\d{6}")
# Of the machine: results of another can't be compared.
_SAME = ("system", "machine", "cpus", "memory_bytes", "target_cpus", "load_cpus", "engine")
# Standard errors on each side: of an interval of 98 %, and of a capacity's own, of 90 %.
_WIDTH, _WIDTH_OF_INTERVAL = 2.33, 1.645
# Of the same code at equal CPU speed, from one session to another (docs/measured/capacity.md).
_ERROR_OF_SESSION = 0.04
_WHAT = ("target", "scenario", "only", "slo")


@dataclass(frozen=True)
class StoredCapacity:
    """A stored capacity, requests per second, with its interval of 90 %; `speed` is that of the
    CPU during its loads.
    """

    name: str
    rate: float
    low: float
    high: float
    confirmed: bool
    speed: float | None
    host: dict[str, Any]
    what: dict[str, Any]


def find_pair(a: str, b: str) -> tuple[StoredCapacity, StoredCapacity] | None:
    """Return the two stored capacities of these names; None if neither is one's name.

    Raises:
        UsageError: only one is, or one has no interval or can't be read.
    """
    first, second = find_stored(a), find_stored(b)
    if first and second:
        return first, second
    for found, other in ((first, b), (second, a)):
        if found:
            raise UsageError(
                f"{found.name} is a stored capacity, and {other} is none. Name two of them: lab "
                "list runs"
            )
    return None


def find_stored(name: str) -> StoredCapacity | None:
    """Return the stored capacity of that name, a folder of results/; None for another name.

    Raises:
        UsageError: it does not exist, has no interval, or can't be read.
    """
    if not _NAME.fullmatch(Path(name).name):
        return None
    path = project().results / Path(name).name / "result.json"
    if not path.exists():
        raise UsageError(f"{relative(path)} does not exist. Names: lab list runs")
    try:
        document = read_json(path)
        require_format(document, path)
    except ValueError as error:
        raise UsageError(f"{path} can't be read: {error}.") from None
    found = stored_capacity(Path(name).name, document)
    if found is None:
        raise UsageError(
            f"{name} has no interval, so a difference can't be told from chance. Compare "
            "capacities: lab capacity stores them."
        )
    return found


def stored_capacity(name: str, document: dict[str, Any]) -> StoredCapacity | None:
    """Return the capacity of a search's document; None if it has no interval."""
    values = [document.get(field) for field in ("rate", "low", "high")]
    if "slo" not in document or not all(isinstance(value, int | float) for value in values):
        return None
    found, low, high = (float(value or 0) for value in values)
    return StoredCapacity(
        name,
        found,
        low,
        high,
        confirmed=document.get("outcome") == "confirmed",
        speed=document.get("cpu_speed"),
        host={field: document.get("host", {}).get(field) for field in _SAME},
        what={field: document.get(field) for field in _WHAT},
    )


def compare_stored(a: StoredCapacity, b: StoredCapacity, threshold: float) -> dict[str, Any]:
    """Return the comparison: what a request costs at the capacity, B ÷ A.

    Raises:
        UsageError: they are of different machines, or for different loads.
    """
    _require_equal(a, b, a.host, b.host, "of different machines")
    _require_equal(a, b, a.what, b.what, "for different loads")
    ratio = _ratio(a, b)
    doubts = _doubts(a, b)
    verdict: Verdict = "can't tell" if doubts else judge(ratio, threshold)
    return {
        "a": {"name": a.name, "rate": a.rate, "low": a.low, "high": a.high},
        "b": {"name": b.name, "rate": b.rate, "low": b.low, "high": b.high},
        "ratio": {name: round(getattr(ratio, name), 4) for name in ("ratio", "low", "high")},
        "threshold": threshold,
        "verdict": verdict,
        "headline": _headline(a, b, ratio, verdict, threshold, doubts),
    }


def _require_equal(
    a: StoredCapacity,
    b: StoredCapacity,
    first: dict[str, Any],
    second: dict[str, Any],
    complaint: str,
) -> None:
    differing = [name for name in first if first[name] != second[name]]
    if differing:
        name = differing[0]
        raise UsageError(
            f"{a.name} and {b.name} are {complaint} ({name}: {first[name]} and {second[name]}), so "
            "they can't be compared."
        )


def _doubts(a: StoredCapacity, b: StoredCapacity) -> list[str]:
    """Return why these capacities decide nothing."""
    unconfirmed = [f"{one.name} is not confirmed" for one in (a, b) if not one.confirmed]
    unknown = [f"the CPU's speed is not in {one.name}" for one in (a, b) if not one.speed]
    return unconfirmed + unknown


def _ratio(a: StoredCapacity, b: StoredCapacity) -> Ratio:
    """Return A ÷ B at equal CPU speed, so that more is slower, with an interval of 98 %."""
    faster = a.speed / b.speed if a.speed and b.speed else 1.0
    centre = math.log(a.rate / b.rate / faster)
    half = _WIDTH * math.hypot(_error(a), _error(b))
    return Ratio(math.exp(centre), math.exp(centre - half), math.exp(centre + half))


def _error(one: StoredCapacity) -> float:
    """Return the standard error of the logarithm, by the interval; at least that of sessions."""
    return max(math.log(one.high / one.low) / 2 / _WIDTH_OF_INTERVAL, _ERROR_OF_SESSION)


def _headline(
    a: StoredCapacity,
    b: StoredCapacity,
    ratio: Ratio,
    verdict: Verdict,
    threshold: float,
    doubts: Sequence[str],
) -> str:
    value = (
        f"{rate(b.rate)}/s against {rate(a.rate)}/s, × {1 / ratio.ratio:.3g} "
        f"({1 / ratio.high:.3g} to {1 / ratio.low:.3g}) at equal CPU speed"
    )
    reason = ", ".join(doubts) or f"these results can tell {ratio.resolution:.1%}"
    texts = {
        "slower": f"slower: B sustains {value}",
        "faster": f"faster: B sustains {value}",
        "not slower": f"not slower by {threshold:.0%}: B sustains {value}",
        "can't tell": f"can't tell ({reason}): B sustains {value}",
    }
    return texts[verdict]
