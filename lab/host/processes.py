"""CPU time of process trees."""

import psutil


def cpu_seconds(roots: dict[str, int]) -> dict[str, float]:
    """CPU seconds so far of each tree; `roots` has the process at its top, by name.

    What ended and was waited for counts on, in its parent.
    """
    parents, used = {}, {}
    for process in psutil.process_iter(["ppid", "cpu_times"]):
        parents[process.pid] = process.info["ppid"]
        times = process.info["cpu_times"]
        used[process.pid] = sum(times[:4]) if times else 0.0
    names = {pid: name for name, pid in roots.items()}
    total = dict.fromkeys(roots, 0.0)
    for pid, seconds in used.items():
        name = _root(pid, parents, names)
        if name is not None:
            total[name] += seconds
    return total


def _root(pid: int, parents: dict[int, int], names: dict[int, str]) -> str | None:
    """The name of the tree that `pid` is in."""
    while pid not in names:
        if pid not in parents or pid == parents[pid]:
            return None
        pid = parents[pid]
    return names[pid]
