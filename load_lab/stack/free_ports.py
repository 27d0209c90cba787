"""Ports for programs that the lab starts next to others."""

import socket
from collections.abc import Iterator
from itertools import count

from load_lab.settings import LOOPBACK


def free_ports(first: int, each: int = 1) -> Iterator[int]:
    """Yield ports, from `first` on, which nothing listens at, nor at the next ones up to `each`."""
    for port in count(first, each):
        if all(map(_is_free, range(port, port + each))):
            yield port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
