"""A k6 load of bookings and page requests with a fault in it, and the bookings in Postgres."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from load_lab.load.k6 import k6_env
from load_lab.load.load import Load, new_testid
from load_lab.paths import ROOT
from load_lab.stack.engine import Engine
from load_lab.stack.native.supervision import wait_for
from load_lab.targets.reference.app import ReferenceApp
from tests.faults.catalogue import Fault
from tests.faults.evaluation import FaultResult, Outage, StoredBookings, evaluate
from tests.faults.injector import FaultInjector
from tests.faults.ledger import Booking, Ledger, parse_booking, read

# Bookings per second, and page requests per second.
RATE = 10
# Seconds of load before the fault, which warm the caches, and after its repair.
BEFORE = 3
AFTER = 10
# Timeout of page requests, in seconds: longer than any fault blocks the backend.
CLIENT_TIMEOUT = 10
# Includes k6's start, and 30 s in which clients retry requests that failed at the end.
TIMEOUT = 90

# A booking's guests are stored twice; if they differ, the booking counts as wrong.
_BOOKINGS = """
SELECT json_build_object(
    'id', id, 'suite', suite_id, 'check_in', check_in, 'check_out', check_out,
    'customers', to_json(customer_ids), 'links', to_json(ARRAY(
        SELECT customer_id FROM hotels_booking_customers WHERE booking_id = hotels_booking.id
    ))
)::text
FROM hotels_booking WHERE check_in BETWEEN '{first}' AND '{last}' AND suite_id IN ({suites})
"""
_OVERLAPPING = """
SELECT count(*) FROM hotels_booking one JOIN hotels_booking other
  ON one.suite_id = other.suite_id AND one.id < other.id
 AND one.check_in < other.check_out AND other.check_in < one.check_out
"""


def run_fault(fault: Fault, injector: FaultInjector, folder: Path) -> FaultResult:
    """Run the load with `fault` in it and return the results; the files are in `folder`."""
    with fault.prepare(injector):
        seconds = BEFORE + fault.seconds + AFTER
        with _running_k6(injector.engine, seconds, folder) as file:
            # The fault begins after the warm-up.
            time.sleep(BEFORE)
            outage = _inject(fault, injector)
    ledger = read(file)
    name = (
        fault.name if injector.engine.name == "native" else f"{fault.name}, {injector.engine.name}"
    )
    return evaluate(name, ledger, outage, read_bookings(injector.engine, ledger), RATE * seconds)


def _inject(fault: Fault, injector: FaultInjector) -> Outage:
    """Inject the fault; return its begin and the begin of its repair."""
    start = time.time()
    with fault.inject(injector):
        time.sleep(fault.seconds if fault.waits else 0)
        end = time.time()
    return Outage(start, end, fault.unseen, fault.felt)


@contextmanager
def _running_k6(engine: Engine, seconds: int, folder: Path) -> Iterator[Path]:
    """Run k6 during the `with` block and wait for its end; yield the path of its ledger."""
    ledger, log_file = folder / "ledger.jsonl", folder / "k6.log"
    with log_file.open("w") as log:
        process = _start_k6(engine, seconds, folder, ledger, log)
        try:
            wait_for(
                lambda: _has_begun(process, ledger), seconds=30, what=f"k6's load, see {log_file}"
            )
            yield ledger
            process.wait(TIMEOUT)
        finally:
            _end(process)
    assert process.returncode == 0, f"k6 ended with {process.returncode}:\n{log_file.read_text()}"


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Stop k6 with SIGINT: compose forwards it, while SIGKILL would leave the container running."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    try:
        process.wait(TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _start_k6(engine, seconds, folder, ledger, log) -> "subprocess.Popen[bytes]":
    load = Load("hold", "faults", rate=RATE, duration=f"{seconds}s", testid=new_testid("faults"))
    settings = engine.settings()
    env = k6_env(engine, ReferenceApp(engine), load, folder)
    env["CLIENT_TIMEOUT"] = str(CLIENT_TIMEOUT)
    command = engine.k6(settings, env)
    # Relative to the scripts, because the project's folder has another name in a container.
    console = os.path.relpath(ledger, ROOT / "k6")
    flags = ["--quiet", "--log-format", "json", "--console-output", console]
    argv = [*command.argv, "run", *flags, "main.js"]
    return subprocess.Popen(argv, cwd=command.cwd, env=command.env, stdout=log, stderr=log)


def _has_begun(process: "subprocess.Popen[bytes]", ledger: Path) -> bool:
    assert process.poll() is None, "k6 ended before its load began"
    return ledger.exists() and "the load begins" in ledger.read_text()


def read_bookings(engine: Engine, ledger: Ledger) -> StoredBookings:
    """Return Postgres's bookings in the load's suites and nights, and the number of overlaps."""
    nights = [booking.check_in for booking in ledger.bookings.values()]
    suites = ", ".join(sorted({f"'{booking.suite}'" for booking in ledger.bookings.values()}))
    query = _BOOKINGS.format(first=min(nights), last=max(nights), suites=suites)
    rows = [_row(text) for text in engine.sql("hotel", query)]
    (overlapping,) = engine.sql("hotel", _OVERLAPPING)
    return StoredBookings(dict(rows), int(overlapping))


def _row(text: str) -> tuple[str, Booking]:
    row = json.loads(text)
    if sorted(row["links"]) != sorted(row["customers"]):
        row["customers"] = ["differ"]
    return row["id"], parse_booking(row)
