"""LAB_NGINX_CACHE=protected: reject a fetch for the cache that would end after Nginx's timeout.

On a slow machine the pages of a cold cache wait in front of the server, and Nginx gives up on the
last ones. Without a deadline the server would still build them, and later requests would have them
built again.
"""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

# Nginx's $msec and its timeout in seconds: the header X-Fetch-Start.
_FETCH = re.compile(r"(\d{1,12}\.\d{3}) (\d{1,5})")
# A fetch that waited no longer found no queue. It is always built, so that one slow build can't
# stop all later ones.
NO_WAIT_SECONDS = 1.0
# The longest of the last builds counts, and builds differ.
_BUILDS, _MARGIN = 10, 1.25


class BuildTimes:
    """Durations of one process's last builds, by route, in seconds."""

    def __init__(self) -> None:
        # Replaced as a whole, since threads read it.
        self._seconds: dict[str, tuple[float, ...]] = {}

    @contextmanager
    def measure(self, route: str) -> Iterator[None]:
        start = time.monotonic()
        yield
        earlier = self._seconds.get(route, ())[1 - _BUILDS :]
        self._seconds[route] = (*earlier, time.monotonic() - start)

    def is_too_late(self, route: str, fetch_start: str, now: float) -> bool:
        """Return whether a build that begins at `now` (Unix time) would probably end after Nginx's
        timeout. `fetch_start` is Nginx's header, empty for requests outside its queue.
        """
        if (match := _FETCH.fullmatch(fetch_start)) is None:
            return False
        wait, timeout = now - float(match[1]), int(match[2])
        expected = _MARGIN * max(self._seconds.get(route, ()), default=0.0)
        return wait > NO_WAIT_SECONDS and wait + expected > timeout
