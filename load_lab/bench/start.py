"""Time from `lab up` to the first 200: in a separate state, next to the running stack."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from load_lab.bench.rows import START_SECONDS
from load_lab.bench.sample import Verdict, compare
from load_lab.console import step
from load_lab.errors import LabError
from load_lab.interrupts import uninterrupted
from load_lab.paths import State, current_state
from load_lab.settings import Settings, update_settings
from load_lab.stack import http
from load_lab.stack.locks import command_lock
from load_lab.stack.native import NativeEngine
from load_lab.stack.reference import LIST

_LAB = Path(sys.executable).parent / "lab"
# Added to every port, to avoid those of the running stack.
_PORT_OFFSET = 500
_TIMEOUT_SECONDS = 120
_PAUSE_SECONDS = 0.01


def start_verdict(base: Settings, repeats: int) -> Verdict:
    """Measure the seconds from the call of `lab up` to the API's first 200, with data loaded.

    Raises:
        LabError: it did not start.
    """
    with _second_stack(base) as (settings, env):
        with step("Loading the data of a second stack"):
            _lab("up", env)
        seconds = [_seconds_to_first_answer(settings, env) for _ in range(repeats)]
    return compare_with_limit(seconds)


def compare_with_limit(seconds: list[float]) -> Verdict:
    """Compare the start times, in seconds, with the limit."""
    return compare("seconds to the first 200", START_SECONDS, seconds, at_most=True, unit=" s")


@contextmanager
def _second_stack(base: Settings) -> Iterator[tuple[Settings, dict[str, str]]]:
    """Yield settings and environment of a second stack; afterwards remove it with its data."""
    ports = {name: int(value) for name, value in base.as_env().items() if name.endswith("_PORT")}
    settings = update_settings(
        base, [f"{name}={port + _PORT_OFFSET}" for name, port in ports.items()]
    )
    state = State(current_state().base / "bench-start")
    own = {"LAB_STATE_DIR": str(state.base), "LAB_LOCK": str(state.base / "measurement.lock")}
    with command_lock(state):
        try:
            yield settings, {**os.environ, **settings.as_env(), **own}
        finally:
            with uninterrupted("Taking the second stack down first; a moment."):
                NativeEngine(state).down()
                state.remove()


def _seconds_to_first_answer(settings: Settings, env: dict[str, str]) -> float:
    _lab("down", env)
    with step("Timing `lab up`"):
        start = time.monotonic()
        process = subprocess.Popen(
            [str(_LAB), "up"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        try:
            end = _first_answer(f"{settings.target_url}{LIST}", process)
            _, stderr = process.communicate(timeout=_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            raise LabError(f"`lab up` has not ended after {_TIMEOUT_SECONDS} s.") from None
        finally:
            # Kill it, since nothing would stop the services that it could still start.
            process.kill()
    if end is None or process.returncode:
        raise LabError(f"`lab up` failed: {stderr.strip()[-500:]}")
    return end - start


def _first_answer(url: str, process: subprocess.Popen[str]) -> float | None:
    """Return the time of the first 200; None if `lab up` ended without one."""

    def state_of_start() -> str:
        has_ended = process.poll() is not None
        return "answered" if _has_answer(url) else "ended" if has_ended else ""

    poll = Retrying(
        retry=retry_if_result(lambda state: not state),
        wait=wait_fixed(_PAUSE_SECONDS),
        stop=stop_after_delay(_TIMEOUT_SECONDS),
        retry_error_callback=lambda _state: "late",
    )
    return time.monotonic() if poll(state_of_start) == "answered" else None


def _has_answer(url: str) -> bool:
    try:
        return http.get(url, timeout=5).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False


def _lab(command: str, env: dict[str, str]) -> None:
    process = subprocess.run(
        [str(_LAB), command], env=env, capture_output=True, text=True, check=False
    )
    if process.returncode:
        raise LabError(f"`lab {command}` failed: {process.stderr.strip()[-500:]}")
