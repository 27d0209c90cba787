"""What makes a figure a lower bound: something other than the target gave way, or nothing did."""

from typing import Any


def limit_of(run: dict[str, Any]) -> str | None:
    """`generator_cpu`, `vu_cap`, or `load` for a ramp that ended before the target gave way.

    None when it was the target that gave way. A rate that was held is no ramp: it says nothing of
    what lies above.
    """
    if run.get("limited_by") in ("generator_cpu", "vu_cap"):
        return str(run["limited_by"])
    ramp = "breakpoint" in str(run.get("workload", {}).get("profile", ""))
    return "load" if ramp and run.get("outcome") == "held" else None
