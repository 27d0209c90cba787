"""Control of supervisor: start it, query it, and find its leftover processes."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import xmlrpc.client
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from supervisor.xmlrpc import SupervisorTransport
from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from load_lab.errors import LabError
from load_lab.paths import State, require_own
from load_lab.stack.backlog import Backlog
from load_lab.stack.locks import unused

if TYPE_CHECKING:
    from load_lab.stack.engine import ServiceState

_POLL_SECONDS = 0.05
# The variable that marks the programs that a command starts for itself.
STARTED = "LAB_STARTED"
_LOG_LINES = 12
_FRAMES = ("  ", "Traceback (", "During handling of", "The above exception")

# Supervisor's states, http://supervisord.org/subprocess.html#process-states
_STATES: "dict[str, ServiceState]" = {
    "RUNNING": "running",
    "STARTING": "starting",
    "BACKOFF": "failed",
    "EXITED": "failed",
    "FATAL": "failed",
    "STOPPING": "stopped",
    "STOPPED": "stopped",
}


class Supervision:
    """Supervisor of one stack."""

    def __init__(self, state: State) -> None:
        self._state = state

    @property
    def alive(self) -> bool:
        """Return whether supervisor responds."""
        try:
            self._request("getState")
        except OSError:
            return False
        return True

    def start(self) -> None:
        """Start supervisord with the rendered configuration."""
        self._state.socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        program = Path(sys.executable).parent / "supervisord"
        config = self._state.run / "supervisord.conf"
        result = subprocess.run(
            [str(program), "-c", str(config)],
            env={**os.environ, **mark(self._state)},
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode:
            raise LabError(f"supervisord did not start: {(result.stderr or result.stdout).strip()}")
        wait_for(lambda: self.alive, seconds=10, what="supervisord")

    def stop(self) -> None:
        """Stop every service, last started first, then supervisor itself."""
        supervisor = psutil.Process(self._call("getPID"))
        for name in reversed(list(self.states())):
            if self.state(name) in ("running", "starting"):
                self._call("stopProcess", name)
        self._call("shutdown")
        wait_for(lambda: not is_alive(supervisor), seconds=30, what="the end of supervisord")

    def start_service(self, name: str) -> None:
        """Start one service and return at once; the caller checks whether it is ready."""
        state = self.state(name)
        if state == "failed":
            self._stop(name, wait=True)
        if state not in ("running", "starting"):
            # Another command may have just stopped it.
            wait_for(lambda: not self._is_active(name), seconds=20, what=f"The end of {name}")
            self._call("startProcess", name, False)

    def stop_service(self, name: str) -> None:
        """Stop one service, and wait until it has ended."""
        self._stop(name, wait=True)

    def stop_quickly(self, *names: str, seconds: float = 1) -> None:
        """Stop services at once: kill those that have not ended within `seconds`, with their
        children.

        An overload leaves work for clients that no longer wait.
        """
        active = [name for name in names if self._is_active(name)]
        processes = [each for name in active for each in _process_tree(self.pid(name))]
        for name in active:
            self._stop(name, wait=False)
        with suppress(LabError):
            wait_for(lambda: not any(map(is_alive, processes)), seconds=seconds, what="the end")
        for process in filter(is_alive, processes):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        wait_for(
            lambda: not any(map(self._is_active, active)), seconds=10, what=f"the end of {active}"
        )

    def signal_service(self, name: str, signum: signal.Signals) -> None:
        """Send a signal to the main process of one service."""
        self._call("signalProcess", name, signum.name.removeprefix("SIG"))

    def stop_orphans(self) -> int:
        """Stop this stack's processes that supervisor does not run; return their number.

        Nginx's workers outlive a killed master, and occupy its port for ever.
        """
        candidates = leftovers(self._state)
        family = _process_tree(self._call("getPID"))
        return _stop([process for process in candidates if process not in family])

    def states(self) -> "dict[str, ServiceState]":
        """Return the state of every service, in the order of the configuration file."""
        return {p["name"]: _STATES.get(p["statename"], "failed") for p in self._processes()}

    def state(self, name: str) -> "ServiceState":
        """Return the state of a service."""
        return _STATES.get(self._process(name)["statename"], "failed")

    def pid(self, name: str) -> int:
        """Return the main process of a service; 0 when it is not running."""
        return int(self._process(name)["pid"])

    def pids(self) -> dict[str, int]:
        """Return the main process of each running service."""
        return {p["name"]: p["pid"] for p in self._processes() if p["pid"]}

    def _stop(self, name: str, *, wait: bool) -> None:
        try:
            self._call("stopProcess", name, wait)
        except LabError as error:
            if "NOT_RUNNING" not in str(error):
                raise

    def _is_active(self, name: str) -> bool:
        """Return whether supervisor runs it, will restart it after a failure, or still stops it."""
        return self._process(name)["statename"] in ("STARTING", "RUNNING", "BACKOFF", "STOPPING")

    def _process(self, name: str) -> dict[str, Any]:
        return dict(self._call("getProcessInfo", name))

    def _processes(self) -> list[dict[str, Any]]:
        processes = self._call("getAllProcessInfo")
        # Supervisor sorts by name; the configuration file has the order of the start.
        text = (self._state.run / "supervisord.conf").read_text()
        return sorted(processes, key=lambda p: text.index(f"[program:{p['name']}]"))

    def _call(self, method: str, *arguments: object) -> Any:
        try:
            return self._request(method, *arguments)
        except OSError as error:
            raise LabError(
                f"supervisor does not answer ({error}). `lab up` starts what is missing."
            ) from None

    def _request(self, method: str, *arguments: object) -> Any:
        require_own(self._state.socket.parent)
        transport = SupervisorTransport(serverurl=f"unix://{self._state.socket}")
        proxy = xmlrpc.client.ServerProxy("http://127.0.0.1", transport=transport)
        try:
            return getattr(proxy.supervisor, method)(*arguments)
        except xmlrpc.client.Fault as fault:
            raise LabError(f"supervisor: {fault.faultString}. `lab logs` shows why.") from None
        finally:
            transport.close()


def leftovers(state: State) -> list[psutil.Process]:
    """Return the processes of this stack, with or without a supervisor; not the programs that a
    running command has started.
    """
    processes = [p for p in psutil.process_iter() if _belongs_to_stack(p, state)]
    with unused(state) as is_free:
        return processes if is_free else [p for p in processes if not mark_of(p, STARTED)]


def started_in(state: State) -> list[psutil.Process]:
    """Return the programs that a command has started for itself, with their children."""
    processes = [p for p in psutil.process_iter() if _belongs_to_stack(p, state)]
    return [process for process in processes if mark_of(process, STARTED)]


def mark(state: State, *, load: bool = False) -> dict[str, str]:
    """Return the variables by which this stack's processes are found again; `load`: a generator."""
    return {"LAB_STACK": str(state.base), **({"LAB_LOAD": "on"} if load else {})}


def stop_leftovers(state: State) -> int:
    """Stop what a killed supervisor or `lab` left running; return the number of processes."""
    return _stop(leftovers(state))


def stop_loads(state: State) -> int:
    """Stop the load generators that a killed `lab` left running; return their number."""
    return _stop([process for process in leftovers(state) if mark_of(process, "LAB_LOAD")])


def mark_of(process: psutil.Process, name: str) -> str:
    """Return a variable by which a process was marked; empty without it."""
    try:
        return process.environ().get(name, "")
    except (psutil.Error, OSError):
        return ""


def _stop(processes: list[psutil.Process]) -> int:
    for process in processes:
        # Any of them may end by itself, most of all when its parent was just stopped.
        with suppress(psutil.NoSuchProcess):
            if process.parent() not in processes:
                # On TERM, Postgres waits for its clients; INT is its fast shutdown.
                interrupt = process.name() == "postgres"
                process.send_signal(signal.SIGINT if interrupt else signal.SIGTERM)
    _, alive = psutil.wait_procs(processes, timeout=10)
    for process in alive:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(alive, timeout=5)
    return len(processes)


def _process_tree(pid: int) -> list[psutil.Process]:
    """Return a process with all its descendants; empty when it does not exist."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)] if pid else []
    except psutil.NoSuchProcess:
        return []


def is_alive(process: psutil.Process) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def port_is_open(host: str, port: int) -> bool:
    """Return whether a program listens on the port."""
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex((host, port)) == 0


def wait_for(
    condition: Callable[[], object], *, seconds: float, what: str, backlog: Backlog | None = None
) -> None:
    """Poll until `condition` is true.

    Raises:
        LabError: it was not true within `seconds`, from the last request of the backlog on.
    """
    poll = Retrying(
        retry=retry_if_result(lambda value: not value),
        wait=wait_fixed(_POLL_SECONDS),
        stop=backlog or stop_after_delay(seconds),
    )
    try:
        poll(condition)
    except RetryError:
        message = f"Timed out after {seconds:.0f} s waiting for {what}."
        reason = backlog.problem if backlog else ""
        raise LabError(f"{message}{reason} `lab logs` shows why.") from None


def last_lines(log: Path) -> str:
    """Return the end of a log file, for an error message: without the frames of tracebacks, behind
    which the cause would not be seen.
    """
    if not log.exists():
        return "(it wrote nothing)"
    lines = log.read_text(errors="replace").splitlines()
    told = [line for line in lines if line.strip() and not line.startswith(_FRAMES)]
    return "\n".join(f"    {line}" for line in told[-_LOG_LINES:]) or "(it wrote nothing)"


def remove_socket(state: State) -> None:
    """Remove the socket of a supervisor that has ended."""
    state.socket.unlink(missing_ok=True)
    if state.socket.parent != state.run:
        shutil.rmtree(state.socket.parent, ignore_errors=True)


# These overwrite their environment with a title; their working directory identifies them instead.
_RETITLED_PROGRAMS = {"postgres", "redis-server", "nginx"}


def _belongs_to_stack(process: psutil.Process, state: State) -> bool:
    try:
        if process.name() in _RETITLED_PROGRAMS:
            return Path(process.cwd()) in (state.run, state.postgres)
        return process.environ().get("LAB_STACK") == str(state.base)
    except (psutil.Error, OSError):
        return False


def shared_memory_prefix(state: State) -> str:
    """Return the prefix of this stack's names: two stacks on one machine must not share a channel
    layer.
    """
    return f"load-lab-{sha256(str(state.base).encode()).hexdigest()[:8]}"


def remove_shared_memory(state: State) -> None:
    """Remove this stack's shared memory, after its processes have ended: a live one would recreate
    it.
    """
    for pattern in (f"{shared_memory_prefix(state)}-*", f"sem.{shared_memory_prefix(state)}-*"):
        for path in Path("/dev/shm").glob(pattern):  # noqa: S108
            with suppress(FileNotFoundError):
                path.unlink()
