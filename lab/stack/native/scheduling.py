"""`served_first.py PROGRAM ARGUMENT …` becomes that program, which gets a CPU as soon as it has
something to do.

k6 shares its CPUs with Prometheus and the exporters. Where one of those computes, Linux lets it go
on for a slice of the CPU's time (1 to 3 ms) before k6 may read an answer that has come, and k6 then
says that the answer took longer. Since 6.12 a process may ask for shorter slices, and who does is
let in at once. It gets no more time than before, in more turns.
https://docs.kernel.org/scheduler/sched-eevdf.html
"""

import ctypes
import os
import platform
import struct
import sys

# The kernel's shortest is 0.1 ms; each turn costs some microseconds.
SLICE_NANOSECONDS = 300_000
# https://github.com/torvalds/linux/blob/v6.12/include/uapi/asm-generic/unistd.h, and x86's own
_SETATTR = {"x86_64": 314, "aarch64": 274}
# struct sched_attr, version 0: size, policy (SCHED_OTHER), flags, nice, priority, runtime (of
# SCHED_OTHER the slice), deadline, period.
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")
# By its path and isolated: importing the package would take longer than k6's start.
BECOME = (sys.executable, "-I", __file__)


def ask_for_short_slices() -> bool:
    """Of the calling process and all that it starts; False where the call is not known or refused.
    Before Linux 6.12 it is taken, and changes nothing.
    """
    number = _SETATTR.get(platform.machine())
    if number is None or sys.platform != "linux":
        return False
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    asked = _ATTRIBUTES.pack(_ATTRIBUTES.size, 0, 0, nice, 0, SLICE_NANOSECONDS, 0, 0)
    return bool(ctypes.CDLL(None).syscall(number, 0, asked, 0) == 0)


if __name__ == "__main__":
    # Without them it works as well, and measures a little worse.
    ask_for_short_slices()
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606 - no shell is wanted
