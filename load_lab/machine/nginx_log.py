"""Requests that Nginx refused itself, or could not accept, by the reasons in its error log."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

Rejection = Literal["connections", "files", "shed"]
_REASONS: dict[bytes, Rejection] = {
    b"worker_connections are not enough": "connections",
    # Connections wait until files are closed.
    b"Too many open files": "files",
    # Every upstream has as many requests as max_conns allows.
    b"no live upstreams": "shed",
}
_CHUNK_BYTES = 1 << 20


def rejections(lines: Iterable[bytes]) -> Counter[Rejection]:
    """Count what lines of an error log say."""
    found: Counter[Rejection] = Counter()
    for line in lines:
        found.update(reason for text, reason in _REASONS.items() if text in line)
    return found


def size_of(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def lines_after(log: Path, start: int) -> Iterator[bytes]:
    """Yield the lines of a log from a position on."""
    with suppress(OSError), log.open("rb") as file:
        file.seek(start)
        while lines := file.readlines(_CHUNK_BYTES):
            yield from lines
