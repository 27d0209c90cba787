"""Additional work of a WSGI app, for comparisons of which the true ratio is known: MORE turns of
hashing in each request. Each process writes the CPU time that they took to a file in FOLDER.
"""

import hashlib
import os
import time
from pathlib import Path

_MORE = int(os.environ.get("MORE", "0"))
_burnt = [0.0, 0]


def compute(turns: int) -> None:
    """Work without new objects, whose time does not depend on a process's memory."""
    if turns:
        hashlib.pbkdf2_hmac("sha256", b"password", b"salt", turns)


def burning(application):
    """Return the app with the additional work."""

    def burn_first(environ, start_response):
        _burn()
        return application(environ, start_response)

    return burn_first if _MORE else application


def _burn() -> None:
    started = time.thread_time()
    compute(_MORE)
    _burnt[0] += time.thread_time() - started
    _burnt[1] += 1
    if _burnt[1] % 10 == 0:
        Path(os.environ["FOLDER"], str(os.getpid())).write_text(f"{_burnt[0]} {_burnt[1]}")
