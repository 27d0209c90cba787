"""Requests that Nginx refused itself, or could not accept, by the reasons in its error log."""

from collections import Counter
from collections.abc import Iterable
from typing import Literal

Rejection = Literal["connections", "files", "shed"]
_REASONS: dict[bytes, Rejection] = {
    b"worker_connections are not enough": "connections",
    # Connections wait until files are closed.
    b"Too many open files": "files",
    # Every upstream has as many requests as max_conns allows.
    b"no live upstreams": "shed",
}


def rejections(lines: Iterable[bytes]) -> Counter[Rejection]:
    """Count what lines of an error log say."""
    found: Counter[Rejection] = Counter()
    for line in lines:
        found.update(reason for text, reason in _REASONS.items() if text in line)
    return found
