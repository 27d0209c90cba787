"""What a log gets during a load, whatever happens to its file."""

import os
from functools import partial
from itertools import chain, repeat

import pytest

from load_lab.machine.logs import CHUNK_BYTES, FileText, Lines

OLD, NEW = b"before the load\n", b"one\ntwo\n"


def _append(log, text=NEW):
    with log.open("ab") as file:
        file.write(text)


def _rotate(log):
    _append(log, b"one\n")
    log.rename(log.with_suffix(".1"))
    _append(log, b"two\n")


def _rotate_and_remove(log):
    _rotate(log)
    log.with_suffix(".1").unlink()


def _truncate(log):
    os.truncate(log, 0)
    _append(log)


CHANGES = {
    "it grows": _append,
    "it is rotated": _rotate,
    "it is rotated, and the old file removed": _rotate_and_remove,
    "it is truncated": _truncate,
    "it is removed and made again": lambda log: (log.unlink(), _append(log)),
    "its last line has no end": lambda log: _append(log, NEW[:-1]),
    "it is UTF-16": lambda log: _append(log, NEW.decode().encode("utf-16-le")),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_new_lines_of_a_log_are_read(tmp_path, change):
    log = tmp_path / "app.log"
    log.write_bytes(OLD * 100)
    lines = Lines(FileText(log))
    change(log)
    assert list(lines) == [b"one", b"two"]
    assert not lines.is_cut


def test_log_that_is_made_during_the_load_is_read(tmp_path):
    lines = Lines(FileText(tmp_path / "app.log"))
    _append(tmp_path / "app.log")
    assert list(lines) == [b"one", b"two"]


def test_log_that_is_gone_has_no_lines(tmp_path):
    assert not list(Lines(FileText(tmp_path / "app.log")))
    assert not list(Lines(FileText(tmp_path)))


def test_log_of_a_gigabyte_is_read_in_little_memory(tmp_path):
    log = tmp_path / "app.log"
    text = FileText(log)
    with log.open("wb") as file:
        # A sparse file takes no disk.
        file.truncate(1 << 30)
    sizes = [len(part) for part in text()]
    assert (sum(sizes), max(sizes)) == (1 << 30, CHUNK_BYTES)


def test_line_of_a_gigabyte_is_cut():
    parts = chain(repeat(b"x" * CHUNK_BYTES, 1024), [b"\nlast\n"])
    lines = list(Lines(lambda: parts, seconds=600))
    assert [len(line) for line in lines] == [1 << 16, 4]


def test_log_that_takes_too_long_is_cut_and_says_so():
    lines = Lines(partial(iter, [b"one\n", b"two\n"]), seconds=-1)
    assert list(lines) == [b"one"] or list(lines) == []
    assert lines.is_cut
