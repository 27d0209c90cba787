"""Cases that mostly wait, side by side: each with a backend, an Nginx and a thread of its own."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.nginx_front import Backend, front

Case = Callable[[httpx.Client, Backend], Any]


@contextmanager
def at_once(
    folder: Path, cases: Mapping[str, tuple[Backend, Case]], **settings: str
) -> Iterator[dict[str, Future]]:
    """What becomes of each case, by its name; `result()` raises what it raised."""
    with ExitStack() as fronts, ThreadPoolExecutor(len(cases)) as pool:
        begun = {}
        # One Nginx after the other: two that look for a free port at once may find the same.
        for number, (name, (backend, case)) in enumerate(cases.items()):
            (folder / str(number)).mkdir()
            client = fronts.enter_context(front(folder / str(number), backend, **settings))
            begun[name] = pool.submit(case, client, backend)
        yield begun
