"""Start services and wait for their responses; a service that exits fails at once."""

from functools import partial

import httpx

from load_lab.console import step
from load_lab.errors import LabError
from load_lab.machine.processes import listener
from load_lab.paths import State
from load_lab.settings import Settings
from load_lab.stack import http
from load_lab.stack.backlog import Backlog
from load_lab.stack.native import postgres
from load_lab.stack.native.services.service import Service
from load_lab.stack.native.supervision import Supervision, last_lines, port_is_open, wait_for

# A server's first response takes this long where its workers import Django on a busy machine. With
# a shorter timeout, a slow machine would look like a broken server.
_SECONDS = 60
# Of one with earlier requests, to see between two attempts whether they become fewer.
_BUSY_SECONDS = 3
_PORT_SECONDS = 5
_NEXT_STEP = (
    "Fix the cause and repeat the command, or restore the setting: lab set NAME=VALUE. "
    "`lab status` shows what runs."
)


def start(group: list[Service], supervision: Supervision, settings: Settings, state: State) -> None:
    """Start the enabled services of `group` together, and wait for each.

    Raises:
        LabError: one exited (the message has the end of its log) or does not respond, or another
            program listens on its port.
    """
    enabled = [service for service in group if service.enabled]
    if not enabled:
        return
    with step(f"Starting {', '.join(service.name for service in enabled)}"):
        for service in enabled:
            _start(service, supervision)
        for service in enabled:
            pids: list[int] = []
            # The backend answers for its worker.
            port = http.address(service.alive_url)[1] if service.alive_url else service.port
            backlog = Backlog(service.name, port, _SECONDS)
            wait_for(
                partial(_has_started, service, pids, backlog, supervision, settings, state),
                seconds=_SECONDS,
                what=f"an answer of {service.name}",
                backlog=backlog,
            )


def _start(service: Service, supervision: Supervision) -> None:
    is_stopped = supervision.state(service.name) in ("stopped", "failed")
    if is_stopped and service.port:
        _require_free_port(service)
    supervision.start_service(service.name)


def _require_free_port(service: Service) -> None:
    """Check the port before the start: another program on it would pass for the service."""
    try:
        # The service's own workers may end later than its main process.
        wait_for(
            lambda: not port_is_open(service.host, service.port),
            seconds=_PORT_SECONDS,
            what=f"port {service.port}",
        )
    except LabError:
        raise LabError(
            f"{service.name} can't start: {listener(service.port)} listens on its port "
            f"{service.port}. Stop that program, then repeat the command."
        ) from None


def _has_started(
    service: Service,
    pids: list[int],
    backlog: Backlog,
    supervision: Supervision,
    settings: Settings,
    state: State,
) -> bool:
    pid = supervision.pid(service.name)
    pids += [pid] if pid and not pids else []
    # Supervisor restarts it repeatedly; the first exit is enough.
    if supervision.state(service.name) == "failed" or (pids and pid != pids[0]):
        log = state.logs / f"{service.name}.log"
        raise LabError(
            f"{service.name} did not start. Its log, {log}, ends:\n{last_lines(log)}\n{_NEXT_STEP}"
        )
    if service.name == "postgres":
        return postgres.accepts_connections(settings, state)
    return is_ready(service, _BUSY_SECONDS if backlog else _SECONDS)


def is_ready(service: Service, seconds: float = _SECONDS) -> bool:
    """Return whether the service listens and, if it has an `alive_url`, is ready."""
    listens = not service.port or port_is_open(service.host, service.port)
    return listens and _is_alive(service, seconds)


def _is_alive(service: Service, seconds: float) -> bool:
    """Check `alive_url`: gunicorn's master listens before it has a worker, and even if none can
    start.
    """
    if not service.alive_url:
        return True
    try:
        return http.get(service.alive_url, timeout=seconds).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False
