"""Delays by the kernel's packet scheduler (tc netem) on the loopback, where the kernel has it.

A root scheduler of our own (HTB, which passes at once what no filter names) with one class, whose
queue is netem. u32 filters send the backend's packets there. See tc-htb(8), tc-netem(8), tc-u32(8).
"""

import os
import shutil
import subprocess
from pathlib import Path

from lab.errors import LabError
from lab.paths import State
from lab.settings import Settings

# "LAB", as far as hexadecimal goes: by this a scheduler is known to be ours.
HANDLE = "1ab:"
_CLASS = f"{HANDLE}1"
_QUEUE = "1ac:"
_OURS = f"htb {HANDLE}"
# Packets on their way; netem drops what goes beyond. Default: 1000.
_PACKETS = 100_000


def check(state: State) -> None:
    """Whether the kernel can do it, tried where nothing else lives: in a network of its own.

    Raises:
        LabError: it can't, or another scheduler is in the way; with what was found.
    """
    if os.getuid() != 0:
        raise _unfit("it is not run as root")
    for name in ("tc", "unshare"):
        if shutil.which(name) is None:
            raise _unfit(f"the program {name} is not here (packages iproute2 and util-linux)")
    tried = " && ".join(" ".join(command) for command in (_scheduler(), _class(), _queue(1)))
    done = _run(["unshare", "--net", "sh", "-c", tried])
    if done.returncode:
        raise _unfit(f"this kernel says: {done.stderr.strip().splitlines()[-1]}")
    _refuse_foreign(state)


def delay(settings: Settings, state: State) -> None:
    """Delay as `settings` say, instead of what was delayed before.

    Raises:
        LabError: the kernel refuses, or another scheduler is in the way; ours is gone then.
    """
    remove(state)
    _refuse_foreign(state)
    _mark(state).touch()
    try:
        for command in commands(settings):
            done = _run(command)
            if done.returncode:
                raise LabError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
    except BaseException:
        remove(state)
        raise


def remove(state: State) -> None:
    """Take this stack's scheduler off the loopback, if it is there."""
    if not _mark(state).exists():
        return
    if _root() == _OURS:
        _run(["tc", "qdisc", "del", "dev", "lo", "root"])
    _mark(state).unlink()


def commands(settings: Settings) -> list[list[str]]:
    """The command lines of tc, in order."""
    postgres = (settings.LAB_POSTGRES_PORT, "dport", "sport")
    server = (settings.LAB_BACKEND_PORT, "sport", "dport")
    incoming = settings.LAB_LATENCY_DIRECTION == "incoming"
    filters = [_filter(port, sides[incoming]) for port, *sides in (postgres, server)]
    return [_scheduler(), _class(), _queue(settings.LAB_LATENCY_MS), *filters]


def _scheduler() -> list[str]:
    return ["tc", "qdisc", "add", "dev", "lo", "root", "handle", HANDLE, "htb"]


def _class() -> list[str]:
    # A rate that nothing here reaches: the class is for the queue below it.
    where = ["tc", "class", "add", "dev", "lo", "parent", HANDLE, "classid", _CLASS]
    bursts = ["burst", "100mb", "cburst", "100mb", "quantum", "60000"]
    return [*where, "htb", "rate", "100gbit", *bursts]


def _queue(milliseconds: int) -> list[str]:
    where = ["tc", "qdisc", "add", "dev", "lo", "parent", _CLASS, "handle", _QUEUE]
    return [*where, "netem", "delay", f"{milliseconds}ms", "limit", str(_PACKETS)]


def _filter(port: int, side: str) -> list[str]:
    where = ["tc", "filter", "add", "dev", "lo", "parent", HANDLE, "protocol", "ip", "prio", "1"]
    tcp = ["u32", "match", "ip", "protocol", "6", "0xff"]
    return [*where, *tcp, "match", "ip", side, str(port), "0xffff", "flowid", _CLASS]


def _mark(state: State) -> Path:
    """There while the scheduler is this stack's: another stack's looks the same."""
    return state.run / "netem"


def _root() -> str:
    """Kind and handle of the loopback's root scheduler, such as `noqueue 0:`."""
    for line in _run(["tc", "qdisc", "show", "dev", "lo"]).stdout.splitlines():
        words = line.split()
        if words[:1] == ["qdisc"] and "root" in words:
            return " ".join(words[1:3])
    return "noqueue 0:"


def _refuse_foreign(state: State) -> None:
    found, ours = _root(), _mark(state).exists()
    # What the kernel puts there by itself has the handle 0.
    if not found.endswith(" 0:") and not (ours and found == _OURS):
        raise LabError(
            f"LAB_LATENCY_BY=netem needs the loopback's packet scheduler, and another is there: "
            f"{found}. It was left alone. Remove it (`tc qdisc del dev lo root`), or use "
            "LAB_LATENCY_BY=toxiproxy."
        )


def _unfit(reason: str) -> LabError:
    return LabError(
        f"LAB_LATENCY_BY=netem needs root and a kernel with the schedulers netem and htb; {reason}."
        " Nothing was changed. Use LAB_LATENCY_BY=toxiproxy."
    )


def _run(argv: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, capture_output=True, text=True, check=False)
