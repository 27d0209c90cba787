"""Starting services and waiting until they answer; one that ends instead is told at once."""

from functools import partial

import httpx

from lab import http
from lab.console import step
from lab.errors import LabError
from lab.paths import State
from lab.settings import Settings
from lab.stack.native import postgres
from lab.stack.native.services.service import Service
from lab.stack.native.supervision import (
    Supervision,
    last_lines,
    port_is_taken,
    wait_for,
)

# A server's first answer takes that long where its workers import Django on a machine that is busy
# with other things; with less, a slow machine would be called a broken server.
_SECONDS = 60
_NEXT_STEP = (
    "Fix the cause and repeat the command, or restore the setting: lab set NAME=VALUE. "
    "`lab status` shows what runs."
)


def start(group: list[Service], supervision: Supervision, settings: Settings, state: State) -> None:
    """Start what is wanted of `group`, all at once, and wait for each.

    Raises:
        LabError: one ended, with the end of its log, or does not answer.
    """
    wanted = [service for service in group if service.wanted]
    if not wanted:
        return
    with step(f"Starting {', '.join(service.name for service in wanted)}"):
        for service in wanted:
            supervision.start_service(service.name)
        for service in wanted:
            began: list[int] = []
            wait_for(
                partial(_answers, service, began, supervision, settings, state),
                seconds=_SECONDS,
                what=f"An answer of {service.name}",
            )


def _answers(
    service: Service, began: list[int], supervision: Supervision, settings: Settings, state: State
) -> bool:
    pid = supervision.pid(service.name)
    began += [pid] if pid and not began else []
    # Supervisor starts it again and again; the first end says all.
    if supervision.states().get(service.name) == "failed" or (began and pid != began[0]):
        log = state.logs / f"{service.name}.log"
        raise LabError(
            f"{service.name} did not start. Its log, {log}, ends:\n{last_lines(log)}\n{_NEXT_STEP}"
        )
    if service.name == "postgres":
        return postgres.answers(settings, state)
    return answers(service)


def answers(service: Service) -> bool:
    """Whether it listens and, where it says so, really serves."""
    listens = not service.port or port_is_taken(service.host, service.port)
    return listens and _is_alive(service)


def _is_alive(service: Service) -> bool:
    """Gunicorn's master listens before it has a worker, and without one if none can start."""
    if not service.alive_url:
        return True
    try:
        return http.get(service.alive_url, timeout=_SECONDS).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False
