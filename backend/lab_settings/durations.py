"""Durations as k6 and Nginx write them: 90s, 5m, 1h30m, 500ms."""

import re

# Only ASCII digits, and as many as a duration in years needs.
_PART = r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(h|ms|m|s)"
PATTERN = rf"^({_PART})+$"

_UNIT_SECONDS = {"h": 3600, "m": 60, "s": 1, "ms": 0.001}


def seconds(duration: str) -> float:
    """Return the seconds of a duration that matches PATTERN."""
    return sum(float(n) * _UNIT_SECONDS[unit] for n, unit in re.findall(_PART, duration))
