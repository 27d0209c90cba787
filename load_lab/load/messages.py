"""k6's messages on the terminal. It logs each request without a response, of an app that is down
hundreds: of these, one line is shown.
"""

import re
import sys
import threading
from typing import IO

from load_lab.console import note

_FAILED = re.compile(rb'level=warning msg="Request Failed" error="(.*)"')


class Messages:
    """Copies k6's messages from a pipe to the terminal."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._failed, self._first = 0, ""
        self._thread = threading.Thread(target=self._copy, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Show what is left. k6 has ended, so its pipe has, too."""
        self._thread.join()
        if self._failed:
            plural = "s" if self._failed > 1 else ""
            note(f"k6: {self._failed} request{plural} without a response, the first: {self._first}")

    def _copy(self) -> None:
        for line in self._pipe:
            match = _FAILED.search(line)
            if match is None:
                sys.stderr.write(line.decode(errors="replace"))
                sys.stderr.flush()
                continue
            self._failed += 1
            self._first = self._first or match[1].decode(errors="replace").replace('\\"', '"')
