"""Several daphnes on one socket.

python -m config.server.daphnes HOST:PORT PROCESSES [daphne's flags…]

Daphne is one process; its own documentation shares a socket by --fd under a process manager
(https://github.com/django/daphne, "Running"). This is that manager, and no more: who ends takes the
others along, and whoever started us starts all of them anew.
"""

import os
import signal
import socket
import subprocess
import sys

from config.server.start import ASGI_APP, BACKLOG


def main(bind: str, count: int, flags: list[str]) -> int:
    """Start them, hand on signals, and end with the first of them; returns the exit code."""
    host, _, port = bind.rpartition(":")
    listening = socket.create_server((host, int(port)), backlog=BACKLOG)
    daphnes = [_start(listening.fileno(), flags) for _ in range(count)]
    told: list[int] = []

    def hand_on(sent: int, _frame: object) -> None:
        told.append(sent)
        _stop(daphnes)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, hand_on)
    # Whichever ends first; it is left for `wait` below, which knows it.
    os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
    _stop(daphnes)
    for daphne in daphnes:
        daphne.wait()
    return 0 if told else 1


def _start(descriptor: int, flags: list[str]) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-m", "daphne", "--fd", str(descriptor), *flags, ASGI_APP]
    return subprocess.Popen(argv, pass_fds=[descriptor])


def _stop(daphnes: list[subprocess.Popen[bytes]]) -> None:
    for daphne in daphnes:
        daphne.terminate()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
