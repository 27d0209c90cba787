"""Run a program with short CPU slices: `scheduling.py PROGRAM ARGUMENT …`.

k6 shares its CPUs with Prometheus and the exporters. While one of those computes, Linux lets it
continue for a slice (1 to 3 ms) before k6 can read a response that has arrived, and k6 then reports
a longer response time. Since Linux 6.12, a process can request shorter slices, and is then
scheduled at once. It gets the same CPU time, in more turns.
https://docs.kernel.org/scheduler/sched-eevdf.html
"""

import ctypes
import os
import platform
import struct
import sys

# The kernel's minimum is 0.1 ms; each turn costs some microseconds.
SLICE_NANOSECONDS = 300_000
# https://github.com/torvalds/linux/blob/v6.12/include/uapi/asm-generic/unistd.h, and x86's own
_SETATTR = {"x86_64": 314, "aarch64": 274}
# struct sched_attr, version 0: size, policy (SCHED_OTHER), flags, nice, priority, runtime (for
# SCHED_OTHER the slice), deadline, period.
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")
# By its path, isolated and without `site`: imports would take longer than k6's start.
ARGV_PREFIX = (sys.executable, "-I", "-S", __file__)


def request_short_slices() -> bool:
    """Request short slices for the calling process and all that it starts. Return False where the
    system call is unknown or rejected; before Linux 6.12 it is accepted without effect.
    """
    number = _SETATTR.get(platform.machine())
    if number is None or sys.platform != "linux":
        return False
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    attributes = _ATTRIBUTES.pack(_ATTRIBUTES.size, 0, 0, nice, 0, SLICE_NANOSECONDS, 0, 0)
    return bool(ctypes.CDLL(None).syscall(number, 0, attributes, 0) == 0)


if __name__ == "__main__":
    # Without short slices, the program also works, and k6 measures slightly worse.
    request_short_slices()
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 - no shell is wanted
