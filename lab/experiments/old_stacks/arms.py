"""`arm`: an old stack's arm, started and verified."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from lab import http
from lab.console import note, step
from lab.errors import LabError, UsageError
from lab.experiments.old_stacks.containers import DockerRunner
from lab.experiments.old_stacks.environment import MissingRequirement
from lab.experiments.old_stacks.native import NativeRunner
from lab.experiments.old_stacks.runner import DATABASE, LegacyRunner, RunningArm
from lab.experiments.old_stacks.stacks import Arm, Stack, find, stack
from lab.host.processes import wait_until_idle
from lab.paths import current_state
from lab.settings import Settings
from lab.stack.engine import Engine

_SECONDS_TO_ANSWER, _POLL_SECONDS = 60, 0.1
# Processes that still import their code use the CPU; when that ends, all of them are ready.
_SECONDS_TO_SETTLE = 20


def runner_for(engine: Engine, settings: Settings) -> LegacyRunner:
    """Return the runner of old stacks for `engine`."""
    if engine.name == "docker":
        return DockerRunner(settings)
    return NativeRunner(settings, current_state())


@contextmanager
def arm(engine: Engine, stack_name: str, arm_name: str) -> Iterator[RunningArm]:
    """Start and verify an arm for the context; afterwards none of its processes runs.

    Raises:
        UsageError: the stack or the arm is unknown.
        MissingRequirement: this machine lacks something that the stack needs.
        LabError: it did not start, or its versions are not the pinned ones.
    """
    stack, chosen = find(stack_name, arm_name)
    runner = runner_for(engine, _settings(engine))
    runner.make(stack)
    if stack.database:
        _make_database(engine)
        runner.prepare(stack)
    with runner.running(stack, chosen) as running:
        with step(f"Starting {chosen.title}"):
            answer = _first_answer(running)
            wait_until_idle(running.pids, _SECONDS_TO_SETTLE)
            running.check()
        said = _verified(answer, stack, chosen)
        named = {"stack": stack.name, "arm": arm_name, "title": f"{stack.title}: {chosen.title}"}
        running.facts.update(named | said)
        yield running


def _settings(engine: Engine) -> Settings:
    settings = engine.settings()
    if settings is None:
        raise LabError("The stack is not running. Start it: lab up")
    return settings


def _make_database(engine: Engine) -> None:
    asked = f"SELECT 1 FROM pg_database WHERE datname = '{DATABASE}'"  # noqa: S608
    if not engine.sql("postgres", asked):
        engine.sql("postgres", f"CREATE DATABASE {DATABASE} OWNER hotel")


def _first_answer(running: RunningArm) -> httpx.Response:
    """Wait for a response with status 200.

    Raises:
        LabError: none arrived in time, or a process ended.
    """
    url = f"{running.base_url}/lab/verify"
    poll = Retrying(
        retry=retry_if_exception_type((httpx.HTTPError, _NotYetError)),
        wait=wait_fixed(_POLL_SECONDS),
        stop=stop_after_delay(_SECONDS_TO_ANSWER),
        reraise=True,
    )
    try:
        return poll(_answer, running, url)
    except (httpx.HTTPError, _NotYetError) as error:
        raise LabError(
            f"{url} did not answer within {_SECONDS_TO_ANSWER} s; the last was: {error}"
        ) from None


class _NotYetError(Exception):
    """The response is not a 200."""


def _answer(running: RunningArm, url: str) -> httpx.Response:
    running.check()
    answer = http.get(url, timeout=5)
    if answer.status_code != httpx.codes.OK:
        raise _NotYetError(f"{answer.status_code}: {answer.text[:200]}")
    return answer


def _verified(answer: httpx.Response, stack: Stack, chosen: Arm) -> dict[str, Any]:
    """Return the arm's report about itself, compared with the pinned versions.

    Raises:
        LabError: a value differs.
    """
    said: dict[str, Any] = answer.json()
    wanted = {**stack.expected, "server": chosen.server}
    if chosen.layer:
        wanted["layer"] = f"asgi_{chosen.layer}"
    wrong = {key: said.get(key) for key, value in wanted.items() if said.get(key) != value}
    if not said["python"].startswith(f"{stack.python}."):
        wrong["python"] = said["python"]
    if wrong:
        raise LabError(
            f"{stack.name} says {wrong} of itself, where {wanted} on Python {stack.python} is "
            "pinned. Remove its environment below .lab/legacy; it is made again."
        )
    header = answer.headers.get("server")
    return said | ({"server_header": header} if header else {})


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
        except MissingRequirement as why:
            reasons[name] = str(why)
        except UsageError:
            raise
        except LabError as why:
            # The other stacks are measured; the cells of this one will fail.
            note(f"The old stack {name} can't be made: {why}")
    return reasons
