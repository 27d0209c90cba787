"""Run a program that ends with the `lab` that started it: `tether.py PID PROGRAM ARGUMENT …`.

Killed with SIGKILL, `lab` can stop nothing any more, and k6 would load the stack until its end. The
kernel sends the program SIGINT instead: k6 then writes its summary, Django rolls back.
"""

import ctypes
import os
import signal
import sys

# https://github.com/torvalds/linux/blob/v6.12/include/uapi/linux/prctl.h
_PR_SET_PDEATHSIG = 1


def argv_prefix() -> list[str]:
    """Return the arguments that tether a command to this process.

    By its path, isolated and without `site`: imports would take longer than k6's start.
    """
    return [sys.executable, "-I", "-S", __file__, str(os.getpid())]


def _tether(parent: int) -> None:
    # In the background of a script, programs begin with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGINT))
    # The parent may have ended before the call.
    if os.getppid() != parent:
        sys.exit("The `lab` that started this has ended.")


if __name__ == "__main__":
    if sys.platform == "linux":
        _tether(int(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606 - no shell is wanted
