"""py-spy during a load: the current function of each worker of a server, 100 times a second."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from xml.sax.saxutils import escape

import psutil
from lab_settings.types import cpu_numbers

from load_lab.errors import LabError
from load_lab.machine.cpus import bind
from load_lab.machine.processes import cpu_seconds, process_tree
from load_lab.machine.sockets import network_of
from load_lab.paths import ROOT, project
from load_lab.targets.observation import SERVER
from load_lab.targets.target import Target

RATE = 100
PY_SPY = Path(sys.executable).parent / "py-spy"

_POLL_SECONDS = 0.1
# A sample of a worker that is changing may contain an invalid name: XML forbids these characters.
_INVALID_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
# py-spy needs this time to write the picture.
_END_SECONDS = 30


def find_server(target: Target) -> int:
    """Return the main process of the server that answers a target's requests.

    Raises:
        LabError: it is not visible from here, or is a proxy.
    """
    pids = target.watched().server_pids
    if pids:
        return pids[0]
    if proxy := target.pids.get(SERVER):
        raise LabError(
            f"{_name(proxy)} (process {proxy}) listens at {target.url}, a proxy: the app behind it "
            f"can be profiled. Change url in the file of {target.name} to the app's address."
        )
    raise LabError(
        f"The processes of {target.name} are not visible from here: it does not run (`lab status`)"
        ", or as another user (run `lab` as root), or on another machine, such as that of Docker "
        "Desktop's containers (run `lab` there)."
    )


def check_permission(pid: int) -> None:
    """Take one sample of the server, or of one of its workers, to check that py-spy may attach.

    Raises:
        LabError: the kernel forbids it, or there is no Python.
    """
    errors = "it has ended."
    for each in process_tree(pid):
        argv = [str(PY_SPY), "dump", "--nonblocking", "--pid", str(each)]
        process = subprocess.run(argv, capture_output=True, text=True, check=False)
        if process.returncode == 0:
            return
        errors = process.stderr
        if _is_denied(errors):
            break
    raise LabError(
        f"py-spy can't look into {_name(pid)} (process {pid}): {_reason(errors)} "
        f"{_remedy(pid, errors)}"
    )


def _is_denied(errors: str) -> bool:
    return any(text in errors.lower() for text in ("permission denied", "not permitted"))


def _remedy(pid: int, errors: str) -> str:
    if _is_in_container(pid):
        return "It is in a container: run this command as root, on the container's host."
    if _is_denied(errors):
        return (
            "Run this command as root; or, where the server is your own, let processes look into "
            "each other: sysctl kernel.yama.ptrace_scope=0"
        )
    return "It reads CPython alone: for another program, use a profiler of its language."


def _is_in_container(pid: int) -> bool:
    with suppress(OSError):
        return network_of(pid) != network_of(os.getpid())
    return False


def _name(pid: int) -> str:
    with suppress(psutil.Error):
        return psutil.Process(pid).name()
    return "the server"


def without_root(svg: str, root: Path = ROOT) -> str:
    """Return the SVG with paths relative to `root`, because the picture may be shared."""
    absolute = escape(str(root))
    # A label without enough room is cut, maybe within the path: "/home/me/la..".
    cut = "|".join(re.escape(absolute[:end]) for end in range(len(absolute), 1, -1))
    path = rf"(?<![\w./-])(?:{re.escape(absolute)}(?:(/)|(?![\w.-]))|(?:{cut})(?P<cut>\.\.))"
    return re.sub(path, lambda match: match["cut"] or ("" if match[1] else "."), svg)


class Recorder:
    """Record from the moment that `has_begun` returns true to the end of `with`, on `cpus`: on
    those of the server, each sample would let it wait.
    """

    def __init__(
        self, pid: int, svg: Path, cpus: str, has_begun: Callable[[], bool] = lambda: True
    ) -> None:
        self._pid, self._svg, self._cpus, self._has_begun = pid, svg, cpus, has_begun
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._record, daemon=True)
        self._process: subprocess.Popen[str] | None = None
        self._cpu_before, self._started = 0.0, 0.0
        self.cpu_seconds, self.seconds = 0.0, 0.0

    @property
    def folder(self) -> Path:
        """The folder in which the server runs; this link also leads into a container."""
        return Path(f"/proc/{self._pid}/cwd")

    def __enter__(self) -> "Recorder":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        if self._process is not None:
            self._end(self._process, failed=error is not None)

    def _record(self) -> None:
        while not self._has_begun():
            if self._stop.wait(_POLL_SECONDS):
                return
        self._started, self._cpu_before = time.monotonic(), self._cpu()
        bind(cpu_numbers(self._cpus))
        self._process = subprocess.Popen(
            self._argv(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            # Ctrl-C is for k6; py-spy is stopped after it.
            start_new_session=True,
        )

    def _argv(self) -> list[str]:
        # --nonblocking, since pausing the workers at each sample would slow them down, and wake the
        # arbiter, which would then seem busy. In return some samples fail and are not counted.
        # Without --gil, which leaves out work that releases the GIL, such as writing a page to a
        # socket; without --native, which slows the workers down.
        flags = ["--subprocesses", "--function", "--nonblocking", "--rate", str(RATE)]
        return [str(PY_SPY), "record", *flags, "--pid", str(self._pid), "--output", str(self._svg)]

    def _end(self, process: subprocess.Popen[str], *, failed: bool) -> None:
        self.seconds = time.monotonic() - self._started
        self.cpu_seconds = self._cpu() - self._cpu_before
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            _, errors = process.communicate()
        if not failed and not self._svg.exists():
            raise LabError(f"py-spy wrote no profile: {_reason(errors)}")
        if self._svg.exists():
            svg = self._svg.read_text(errors="replace")
            for root in sorted({ROOT, project().folder}, key=lambda path: -len(str(path))):
                svg = without_root(svg, root)
            self._svg.write_text(_INVALID_XML.sub("", svg))

    def _cpu(self) -> float:
        return cpu_seconds({SERVER: self._pid})[SERVER]


def _reason(errors: str) -> str:
    """Return the message of py-spy's error, without causes and Rust's stack."""
    if _is_denied(errors):
        return "permission denied."
    lines = errors.strip().splitlines()
    messages = [line.removeprefix("Error: ") for line in lines if line.startswith("Error: ")]
    return f"{messages[0].rstrip('.')}." if messages else (lines or ["it printed nothing."])[-1]
