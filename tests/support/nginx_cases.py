"""Cases that mostly wait, run in parallel: each has a separate backend, Nginx and thread."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.nginx_front import Backend, front

Case = Callable[[httpx.Client, Backend], Any]


@contextmanager
def run_parallel(
    folder: Path, cases: Mapping[str, tuple[Backend, Case]], **settings: str
) -> Iterator[dict[str, Future]]:
    """Start the cases; yield their futures by name. `result()` raises the exception of a case."""
    with ExitStack() as fronts, ThreadPoolExecutor(len(cases)) as pool:
        futures = {}
        # Sequential starts: two Nginx that search a free port at once may find the same one.
        for number, (name, (backend, case)) in enumerate(cases.items()):
            (folder / str(number)).mkdir()
            client = fronts.enter_context(front(folder / str(number), backend, **settings))
            futures[name] = pool.submit(case, client, backend)
        yield futures
