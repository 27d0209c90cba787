"""Checks before the stack is started."""

import re
import resource
import shutil

from load_lab.errors import LabError
from load_lab.paths import State, lab_file
from load_lab.settings import LOOPBACK, Settings
from load_lab.stack.measuring_services import MONITORED_SERVICES
from load_lab.stack.native.render import OPEN_FILES
from load_lab.stack.native.services.service import Service
from load_lab.stack.native.supervision import port_is_open
from load_lab.stack.port_owner import port_owner

# Data, WAL (up to 4 GB in a long run, see postgresql.conf) and Prometheus's blocks of a first run
# use about 1 GB.
MIN_FREE_BYTES = 2 * 1024**3
# In a path, Nginx or supervisor reads these as something else; the same list: native/make-venv.sh.
_SPECIAL = re.compile(r"""[\s;%$"'\\`{}#:*?\[\]()&|<>!]""")


def check(settings: Settings, state: State, services: list[Service]) -> None:
    """Check the ports, the disk space and the limit of open files.

    Raises:
        LabError: the stack can't run here.
    """
    _check_ports(settings, services)
    _check_disk(state)
    _check_open_files()


def check_paths(state: State) -> None:
    """Check the project's and the state's path.

    Raises:
        LabError: the services would read one as something else.
    """
    for path, remedy in (
        (lab_file(), "Move the project"),
        (state.base, "Choose another LAB_STATE_DIR"),
    ):
        if special := _SPECIAL.search(str(path)):
            raise LabError(
                f"The native engine can't run in {path}: the path contains {special[0]!r}. Nothing "
                f"was started. {remedy}: letters, digits and . _ - + , @ = ~ are fine."
            )


def _check_ports(settings: Settings, services: list[Service]) -> None:
    has_app = settings.LAB_REFERENCE_APP == "on"
    delayed = (settings.delayed_postgres_port, settings.delayed_backend_port)
    # `lab set` may switch on what is off now.
    hosts = {each.port: each.host for each in services if each.port and (has_app or each.enabled)}
    if has_app:
        hosts |= dict.fromkeys((settings.LAB_NGINX_STATUS_PORT, *delayed), LOOPBACK)
    names = {s.port: "LAB_EXPORTERS_PORT" for s in services if s.name in MONITORED_SERVICES}
    names |= dict.fromkeys(delayed, "LAB_TOXIPROXY_PORT")
    names |= {int(v): k for k, v in settings.as_env().items() if k.endswith("_PORT")}
    conflicts = [port for port, host in sorted(hosts.items()) if port_is_open(host, port)]
    if conflicts:
        ports = ", ".join(f"{port} ({names[port]})" for port in conflicts)
        values = {names[port]: int(getattr(settings, names[port])) for port in conflicts}
        others = " ".join(f"{name}={_other(value)}" for name, value in values.items())
        owner = port_owner(conflicts[0])
        raise LabError(
            f"{_stack_of(owner) if owner else 'Something'} already listens on port {ports}. "
            f"Nothing was started. Stop it, or choose other ports: {others} lab up"
        )


def _other(port: int) -> int:
    return port + (1000 if port < 60_000 else -1000)


def _stack_of(owner: str) -> str:
    return f"The stack of {owner}" + (f" (lab --project {owner} down)" if "/" in owner else "")


def _check_disk(state: State) -> None:
    free = shutil.disk_usage(state.base).free
    if free < MIN_FREE_BYTES:
        raise LabError(
            f"The disk of {state.base} has {free / 1e9:.1f} GB free; the stack needs "
            f"{MIN_FREE_BYTES / 1e9:.1f} GB. Nothing was started. Make room, or put the state "
            "elsewhere with LAB_STATE_DIR."
        )


def _check_open_files() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < OPEN_FILES:
        raise LabError(
            f"This shell may open {hard} files; a stack under load needs {OPEN_FILES}. "
            f"Raise the limit (`ulimit -Hn {OPEN_FILES}` as root, or limits.conf)."
        )
