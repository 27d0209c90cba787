"""Requests that Nginx refused itself, by the reasons in its error log."""

from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Literal

Rejection = Literal["connections", "shed"]
_REASONS: dict[bytes, Rejection] = {
    b"worker_connections are not enough": "connections",
    # Every upstream has as many requests as max_conns allows.
    b"no live upstreams": "shed",
}
_CHUNK_BYTES = 1 << 20


class NginxErrors:
    """Counts the lines that an error log gets from now on."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._start = log.stat().st_size if log.exists() else 0

    def counts(self) -> Counter[Rejection]:
        found: Counter[Rejection] = Counter()
        with suppress(OSError), self._log.open("rb") as file:
            file.seek(self._start)
            while lines := file.readlines(_CHUNK_BYTES):
                for line in lines:
                    found.update(reason for text, reason in _REASONS.items() if text in line)
        return found
