"""Checks of the machine before a measurement, which may take hours."""

import resource
import shutil
from collections.abc import Iterator

import psutil

from load_lab.errors import LabError
from load_lab.machine.cpus import choose_cpus
from load_lab.paths import project
from load_lab.settings import Settings

# A cell needs about 1 MB, Prometheus some hundred MB per hour.
_FREE_BYTES = 2 * 1024**3
# The article's profile has up to 10,000 virtual users, each with a connection.
_OPEN_FILES = 12_000
_SAMPLE_SECONDS = 1.0
_STEAL_SHARE, _BUSY_SHARE = 0.02, 0.15


def check_disk() -> None:
    """Check the free disk space for results.

    Raises:
        LabError: there is too little.
    """
    results = project().results
    free = shutil.disk_usage(results if results.exists() else project().folder).free
    if free < _FREE_BYTES:
        raise LabError(
            f"Too little disk: {free / 1024**3:.1f} GiB are free in results/, needed "
            f"{_FREE_BYTES / 1024**3:.0f} GiB. Nothing that was measured is lost. Make room, then "
            "start again; `lab run` goes on with --resume."
        )


def warnings(settings: Settings) -> list[str]:
    """Return what will make the results less accurate; stored with the result.

    Raises:
        LabError: there is too little disk space.
    """
    check_disk()
    return [*_cpu_warnings(settings), *_file_warnings()]


def _cpu_warnings(settings: Settings) -> Iterator[str]:
    cpus = choose_cpus(settings)
    if cpus.shared:
        yield (
            f"target and generator share CPUs ({cpus.target} and {cpus.load}): what the generator "
            "uses, the target lacks"
        )
    use = psutil.cpu_times_percent(_SAMPLE_SECONDS)
    steal = getattr(use, "steal", 0)  # Linux only
    if steal > 100 * _STEAL_SHARE:
        yield f"the hypervisor took {steal:.0f} % of the CPU time (steal) while idle"
    busy = 100 - use.idle
    if busy > 100 * _BUSY_SHARE:
        yield f"other programs used {busy:.0f} % of the CPUs before the run"


def _file_warnings() -> Iterator[str]:
    """Check the hard limit: Go programs such as k6 raise the soft limit to it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < _OPEN_FILES:
        yield f"open files are limited to {hard}; {_OPEN_FILES} are safe (ulimit -Hn)"
