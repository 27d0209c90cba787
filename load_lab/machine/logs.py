"""What a log gets during a load: in bounded memory and time, whatever its size and encoding."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

# Returns what a log got since it was made, in parts.
NewText = Callable[[], Iterable[bytes]]

CHUNK_BYTES = 1 << 20
# No line that is read is longer.
_LONGEST_LINE = 1 << 16
_MOST_SECONDS = 5.0


class FileText:
    """What a file gets from now on, which may be rotated, truncated or made in between: the rest of
    the file that is open now, then the one that has its name at the end.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _opened(path)
        self._start = _size(self._file) if self._file else 0

    def __call__(self) -> Iterator[bytes]:
        last = _opened(self._path)
        if self._file:
            yield from _rest(self._file, self._start)
        if last and (self._file is None or not _is_same(self._file, last)):
            yield from _rest(last, 0)
        for file in filter(None, (self._file, last)):
            file.close()
        self._file = None


def _opened(path: Path) -> BinaryIO | None:
    with suppress(OSError):
        return path.open("rb")
    return None


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def _is_same(one: BinaryIO, other: BinaryIO) -> bool:
    return os.path.samestat(os.fstat(one.fileno()), os.fstat(other.fileno()))


def _rest(file: BinaryIO, start: int) -> Iterator[bytes]:
    with suppress(OSError):
        size = _size(file)
        # A shorter file was truncated.
        file.seek(start if start <= size else 0)
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


class Lines:
    """The lines of a text; `is_cut` if there was no time for all of it."""

    def __init__(self, text: NewText, seconds: float = _MOST_SECONDS) -> None:
        self._text, self._seconds = text, seconds
        self.is_cut = False

    def __iter__(self) -> Iterator[bytes]:
        end, rest = time.monotonic() + self._seconds, b""
        for chunk in self._text():
            # Every second byte of UTF-16 is zero.
            first, *others = chunk.replace(b"\0", b"").split(b"\n")
            rest += first[: _LONGEST_LINE - len(rest)]
            if others:
                yield rest
                yield from others[:-1]
                rest = others[-1][:_LONGEST_LINE]
            if time.monotonic() > end:
                self.is_cut = True
                return
        if rest:
            yield rest
