"""Kill a command or a service while clients book, and find what it left."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from pathlib import Path

import httpx
import psutil

from load_lab.paths import State
from load_lab.stack.native import NativeEngine
from load_lab.stack.native.supervision import is_alive, leftovers, wait_for
from tests.faults.kills.catalogue import COMMANDS, SIGNALS, Kill
from tests.support.background import repeat_in_thread
from tests.support.booking_load import FIRST_NIGHT, NIGHTS

LAB = Path(sys.executable).parent / "lab"
_SECONDS = 90


@dataclass
class Clients:
    """A client that books one night after the other, and the ids that it got with a 201."""

    url: str
    acknowledged: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        hotel = httpx.get(f"{self.url}/api/hotel/", timeout=30).json()[0]["id"]
        suite = httpx.get(f"{self.url}/api/hotel/{hotel}/", timeout=30).json()["suites"][0]
        guest = suite["bookings"][0]["customers"][0]
        self._wish = {"suite": suite["id"], "customers": [guest]}
        self._nights = count(int(time.time()) % NIGHTS)

    def book(self, times: int = 1) -> None:
        for _ in range(times):
            night = FIRST_NIGHT + timedelta(days=next(self._nights))
            nights = {"check_in": str(night), "check_out": str(night + timedelta(days=1))}
            response = httpx.post(f"{self.url}/api/booking/", json=self._wish | nights, timeout=10)
            if response.status_code == 201:
                self.acknowledged.append(response.json()["id"])

    @contextmanager
    def booking(self) -> Iterator[None]:
        """Book all the time during the block; failures are what a killed service causes."""
        with repeat_in_thread(self._try_to_book, pause=0.05):
            yield

    def _try_to_book(self) -> None:
        with suppress(httpx.HTTPError):
            self.book()


def lost_bookings(engine: NativeEngine, acknowledged: list[str]) -> set[str]:
    """Return the acknowledged bookings that the database lacks."""
    names = ", ".join(f"'{booking}'" for booking in acknowledged) or "NULL"
    stored = engine.sql("hotel", f"SELECT id FROM hotels_booking WHERE id IN ({names})")
    return set(acknowledged) - set(stored)


def kill_service(name: str, engine: NativeEngine, state: State) -> None:
    if name == "supervisord":
        pid = int((state.run / "supervisord.pid").read_text())
    else:
        pid = engine.pids()[name]
    kill_process(psutil.Process(pid))


def kill_process(process: psutil.Process) -> None:
    process.kill()
    wait_for(lambda: not is_alive(process), seconds=5, what=f"the end of process {process.pid}")


@dataclass(frozen=True)
class KilledCommand:
    """The exit code of a killed command, and what it had printed."""

    code: int
    output: str


def kill_command(kill: Kill, log: Path) -> KilledCommand:
    """Start the command, and send it the signals at the moment of `kill`."""
    with log.open("w") as output:
        process = subprocess.Popen(
            [str(LAB), *COMMANDS[kill.command].argv],
            stdout=output,
            stderr=output,
            start_new_session=True,
            # Under nohup, the tests and all that they start would ignore it.
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
        )
    try:
        wait_for(
            lambda: kill.moment.line in log.read_text() or process.poll() is not None,
            seconds=_SECONDS,
            what=f"'{kill.moment.line}'",
        )
        assert process.poll() is None, f"ended before the kill: {log.read_text()}"
        time.sleep(kill.moment.seconds)
        for number in SIGNALS[kill.signals]:
            process.send_signal(number)
            time.sleep(0.2)
        return KilledCommand(process.wait(_SECONDS), log.read_text())
    finally:
        process.kill()
        process.wait()


def strangers(engine: NativeEngine, state: State) -> list[str]:
    """Return the command lines of the stack's processes that do not belong to its supervisor."""
    supervisor = psutil.Process(engine._supervision._call("getPID"))
    family = {supervisor.pid, *(child.pid for child in supervisor.children(recursive=True))}
    return [str(p.cmdline()) for p in leftovers(state) if p.pid not in family]
