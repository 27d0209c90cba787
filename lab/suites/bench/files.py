"""The file that Nginx is measured against: the same bytes, below its `/static/`."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from lab.paths import current_state

# Where nginx/templates/nginx.conf.template looks.
_FOLDER = "bench"


@contextmanager
def kept_file(page: tuple[str, bytes] | None) -> Iterator[None]:
    """The file with its (name, bytes) below the stack's state directory; gone afterwards."""
    if page is None:
        yield
        return
    folder = current_state().run / _FOLDER
    folder.mkdir(exist_ok=True)
    name, body = page
    try:
        (folder / name).write_bytes(body)
        yield
    finally:
        shutil.rmtree(folder)
