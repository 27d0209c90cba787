"""Durations as k6 and Nginx write them: 90s, 5m, 1h30m, 500ms."""

import re

_PART = r"(\d+(?:\.\d+)?)(h|ms|m|s)"
PATTERN = rf"^({_PART})+$"

_UNIT_SECONDS = {"h": 3600, "m": 60, "s": 1, "ms": 0.001}


def seconds(duration: str) -> float:
    """Return the seconds of a duration that matches PATTERN."""
    return sum(float(n) * _UNIT_SECONDS[unit] for n, unit in re.findall(_PART, duration))
