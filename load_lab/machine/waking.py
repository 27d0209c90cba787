"""How much longer work takes on a CPU that slept before: its caches are cold then."""

import random
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from statistics import fmean, median

from pydantic import BaseModel, Field, TypeAdapter

from load_lab.machine.cpus import bind
from load_lab.machine.noise import UNSTEADY_RATIO, cpu_speed
from load_lab.paths import current_state

# The work reads objects that are spread over more memory than a core's own caches hold.
_HOTELS, _FIELDS, _READ = 20_000, 20, 2_000
_ROUNDS, _PIECES = 4, 20
_PAUSE_SECONDS = 0.012
_MEASUREMENTS = 3
_DAY_SECONDS = 24 * 3600
_SPEED_SECONDS = 0.1


class _Measurement(BaseModel):
    """A measurement, and what it is valid for; `measured_at` is Unix time."""

    boot: str
    cpus: frozenset[int]
    cpu_speed: float = Field(gt=0)
    measured_at: float
    seconds: float = Field(ge=0, allow_inf_nan=False)


_File = TypeAdapter(list[_Measurement])


@cache
def wake_seconds(cpus: frozenset[int]) -> float:
    """Return by how many seconds of CPU time a piece of work of 2 to 4 ms takes longer on `cpus`
    after a pause: the median of up to three measurements of the last 24 hours.

    Each of the first three commands measures once, in 2 s, and stores it; so does one after a
    reboot, or at another CPU speed.
    """
    file = current_state().base / "waking.json"
    boot, speed = _boot(), cpu_speed(cpus, _SPEED_SECONDS)
    stored = [each for each in _read(file) if each.boot == boot and _is_recent(each)]
    valid = [each for each in stored if each.cpus == cpus and _is_alike(each.cpu_speed, speed)]
    if len(valid) < _MEASUREMENTS:
        valid.append(_measurement(boot, cpus, speed))
        _write(file, [*stored, valid[-1]])
    return median(each.seconds for each in valid)


def _boot() -> str:
    """Return the identifier of the machine's current boot; Linux only, elsewhere empty."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


def _read(file: Path) -> list[_Measurement]:
    """Return the stored measurements; none if the file is missing, unreadable or damaged."""
    # ValueError: pydantic's errors, too.
    with suppress(OSError, ValueError):
        return _File.validate_json(file.read_bytes())
    return []


def _write(file: Path, measurements: list[_Measurement]) -> None:
    """Store the measurements; a file that can't be written is not an error."""
    with suppress(OSError):
        scratch = file.with_suffix(".new")
        scratch.write_bytes(_File.dump_json(measurements))
        scratch.replace(file)


def _is_recent(measurement: _Measurement) -> bool:
    return 0 <= time.time() - measurement.measured_at < _DAY_SECONDS


def _is_alike(one: float, other: float) -> bool:
    return max(one, other) / min(one, other) < UNSTEADY_RATIO


def _measurement(boot: str, cpus: frozenset[int], speed: float) -> _Measurement:
    # In a separate thread, because a thread stays pinned to its CPUs.
    with ThreadPoolExecutor(1) as pool:
        seconds = pool.submit(_measure, cpus).result()
    return _Measurement(
        boot=boot, cpus=cpus, cpu_speed=speed, measured_at=time.time(), seconds=seconds
    )


def _measure(cpus: frozenset[int]) -> float:
    bind(set(cpus))
    hotels = [{str(field): object() for field in range(_FIELDS)} for _ in range(_HOTELS)]
    awake, woken = list[float](), list[float]()
    # In turns, since the CPUs' speed wanders.
    for _ in range(_ROUNDS):
        awake += [_cpu_seconds(hotels) for _ in range(_PIECES)]
        woken += [_cpu_seconds(hotels, _PAUSE_SECONDS) for _ in range(_PIECES)]
    return max(fmean(woken) - fmean(awake), 0.0)


def _cpu_seconds(hotels: Sequence[dict[str, object]], pause: float = 0.0) -> float:
    time.sleep(pause)
    started = time.thread_time()
    for hotel in random.sample(hotels, _READ):
        str(hotel["3"].__class__.__name__)
    return time.thread_time() - started
