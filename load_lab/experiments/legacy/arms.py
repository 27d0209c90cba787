"""`arm`: an old stack's arm, started and verified."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from load_lab.console import note, step
from load_lab.errors import LabError, UsageError
from load_lab.experiments.legacy.containers import DockerRunner
from load_lab.experiments.legacy.environment import MissingRequirement
from load_lab.experiments.legacy.native import NativeRunner
from load_lab.experiments.legacy.runner import DATABASE, LegacyRunner, RunningArm
from load_lab.experiments.legacy.stacks import Arm, Stack, find, stack
from load_lab.machine.processes import wait_until_idle
from load_lab.paths import current_state
from load_lab.settings import Settings
from load_lab.stack import http
from load_lab.stack.engine import Engine, settings_of
from load_lab.stack.reference import ROLE

_START_SECONDS, _POLL_SECONDS = 60, 0.1
# Processes that still import their code use the CPU; when that ends, all of them are ready.
_IDLE_SECONDS = 20


def runner_for(engine: Engine, settings: Settings) -> LegacyRunner:
    """Return the runner of old stacks for `engine`."""
    if engine.has_processes:
        return NativeRunner(settings, current_state())
    return DockerRunner(settings)


@contextmanager
def arm(engine: Engine, stack_name: str, arm_name: str) -> Iterator[RunningArm]:
    """Start and verify an arm for the context; afterwards none of its processes runs.

    Raises:
        UsageError: the stack or the arm is unknown.
        MissingRequirement: this machine lacks something that the stack needs.
        LabError: it did not start, or its versions are not the pinned ones.
    """
    stack, arm = find(stack_name, arm_name)
    runner = runner_for(engine, settings_of(engine))
    runner.make(stack)
    if stack.database:
        _make_database(engine)
        runner.prepare(stack)
    with runner.running(stack, arm) as running:
        with step(f"Starting {arm.title}"):
            response = _first_response(running)
            wait_until_idle(running.target.pids, _IDLE_SECONDS)
            running.target.require_alive()
        report = _check_versions(response, stack, arm)
        names = {"stack": stack.name, "arm": arm_name, "title": f"{stack.title}: {arm.title}"}
        running.facts.update(names | report)
        yield running


def _make_database(engine: Engine) -> None:
    query = f"SELECT 1 FROM pg_database WHERE datname = '{DATABASE}'"  # noqa: S608
    if not engine.sql("postgres", query):
        engine.sql("postgres", f"CREATE DATABASE {DATABASE} OWNER {ROLE}")


def _first_response(running: RunningArm) -> httpx.Response:
    """Wait for a response with status 200.

    Raises:
        LabError: none arrived in time, or a process ended.
    """
    url = f"{running.target.url}/lab/verify"
    retry = Retrying(
        retry=retry_if_exception_type((httpx.HTTPError, _NotReadyError)),
        wait=wait_fixed(_POLL_SECONDS),
        stop=stop_after_delay(_START_SECONDS),
        reraise=True,
    )
    try:
        return retry(_get, running, url)
    except (httpx.HTTPError, _NotReadyError) as error:
        raise LabError(
            f"{url} did not answer within {_START_SECONDS} s; the last was: {error}"
        ) from None


class _NotReadyError(Exception):
    """The response is not a 200."""


def _get(running: RunningArm, url: str) -> httpx.Response:
    running.target.require_ready()
    response = http.get(url, timeout=5)
    if response.status_code != httpx.codes.OK:
        raise _NotReadyError(f"{response.status_code}: {response.text[:200]}")
    return response


def _check_versions(response: httpx.Response, stack: Stack, arm: Arm) -> dict[str, Any]:
    """Return the arm's report about itself, compared with the pinned versions.

    Raises:
        LabError: a value differs.
    """
    report: dict[str, Any] = response.json()
    expected = {**stack.expected, "server": arm.server}
    if arm.layer:
        expected["layer"] = f"asgi_{arm.layer}"
    differences = {
        key: report.get(key) for key, value in expected.items() if report.get(key) != value
    }
    if not report["python"].startswith(f"{stack.python}."):
        differences["python"] = report["python"]
    if differences:
        raise LabError(
            f"{stack.name} says {differences} of itself, where {expected} on Python {stack.python} "
            "is pinned. Remove its environment below .lab/legacy; it is made again."
        )
    header = response.headers.get("server")
    return report | ({"server_header": header} if header else {})


def missing_stacks(engine: Engine, settings: Settings, names: Iterable[str]) -> dict[str, str]:
    """Prepare the stacks `names`. Return the reason for each that can't run here.

    A stack that should run here but can't be built is reported, and its cells will fail.

    Raises:
        UsageError: a stack is unknown.
    """
    runner = runner_for(engine, settings)
    reasons = {}
    for name in sorted(set(names)):
        try:
            runner.make(stack(name))
        except MissingRequirement as error:
            reasons[name] = str(error)
        except UsageError:
            raise
        except LabError as error:
            # The other stacks are measured; the cells of this one will fail.
            note(f"The old stack {name} can't be made: {error}")
    return reasons
