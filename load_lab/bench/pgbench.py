"""pgbench: Postgres's capacity for the statements of a booking."""

import json
import math
import os
import re
import subprocess
import tempfile
from datetime import date, datetime
from pathlib import Path
from typing import Any

from load_lab.bench.sample import Sample
from load_lab.bench.wrk import cpu_of_children
from load_lab.errors import LabError
from load_lab.machine.busy_loop import Busy, BusyMeter
from load_lab.machine.cpus import choose_cpus
from load_lab.paths import current_state
from load_lab.settings import LOOPBACK, Settings
from load_lab.stack.engine import Engine
from load_lab.stack.native import die_with_parent
from load_lab.stack.native.program_paths import library_env, require
from load_lab.stack.native.supervision import mark
from load_lab.stack.reference import DATABASE, PASSWORD, ROLE
from load_lab.targets.reference.bookings import Slots

# Like the backend on its fast path (backend/config/postgres/prepared.py): parsed once per
# connection. With the simple protocol, Postgres's capacity would be lower.
_PROTOCOL = "prepared"
_THREADS = 1
_GRACE_SECONDS = 60
# Each client has separate nights, from the first free one on, so that clients never conflict.
# Several times what a client books in a second, and few enough for many loads in one calendar.
_NIGHTS_PER_SECOND = 3_000
# Each suite has a separate script, and so separate statements to prepare. Enough that two clients
# seldom compete for a suite's lock, few enough that the preparation takes no time.
_SUITES = 25


def measure(
    engine: Engine, settings: Settings, slots: Slots, clients: int, seconds: float
) -> Sample:
    """Run the statements of a booking on the load's CPUs with this many clients.

    Raises:
        LabError: the backend can't list its statements, or pgbench could not run them.
    """
    statements = booking_statements(engine)
    cpus = choose_cpus(settings)
    with tempfile.TemporaryDirectory(prefix="load-lab-pgbench-") as folder:
        nights = math.ceil(seconds) * _NIGHTS_PER_SECOND
        scripts = write_scripts(statements, slots, Path(folder), nights)
        before, meter = cpu_of_children(), BusyMeter(cpus)
        argv = _argv(scripts, cpus.load, clients, seconds)
        output = _run(argv, settings, seconds)
        busy = meter.busy(cpu_of_children() - before, _THREADS)
    return sample_of(output, busy, seconds)


def booking_statements(engine: Engine) -> list[dict[str, Any]]:
    """Return the output of `manage.py booking_statements`: one object per statement, in order.

    Raises:
        LabError: the command failed.
    """
    process = engine.exec("backend", ["python", "manage.py", "booking_statements"])
    if process.returncode:
        raise LabError(f"`manage.py booking_statements` failed: {process.stderr.strip()[-300:]}")
    return list(json.loads(process.stdout))


def _values(suite: str, guests: list[str], slots: Slots) -> dict[str, str]:
    """Return the values that differ between bookings, by their names in `booking_statements`.

    The suite and its guests are fixed per script. pgbench's variables are numbers, so Postgres
    builds ids from them: decimal digits are also hexadecimal digits.
    """
    ids = ",".join(f"'{guest}'::uuid" for guest in guests)
    unique = ":eight::text || '-0000-4000-8000-' || :twelve::text"
    night = f"'{slots.first_night}'::date + :night::int"
    return {
        "id": f"({unique})::uuid",
        "suite": f"'{suite}'::uuid",
        "check_in": f"({night})",
        "check_out": f"({night} + 1)",
        "customers": f"ARRAY[{ids}]",
        "created_at": "now()",
        "key": f"('{slots.prefix}' || {unique})",
        "lock": ":lock::bigint",
        "lifetime": "'24 hours'",
        "fingerprint": f"('{'0' * 44}' || :eight::text || :twelve::text)",
        "status": "201",
        "body": f"'{_body(suite, guests)}'",
    }


def _body(suite: str, guests: list[str]) -> str:
    """Return a response as long as a booking's; colons before digits would be pgbench variables."""
    booking = {
        "id": suite,
        "suite": suite,
        "check_in": str(date.max),
        "check_out": str(date.max),
        "customers": guests,
        "created_at": datetime.max.isoformat() + "Z",
    }
    return re.sub(r":(?=\d)", r"\\u003a", json.dumps(booking))


_VARIABLES = (
    r"\set night :client_id * {nights} + :count",
    r"\set count :count + 1",
    r"\set eight random(10000000, 99999999)",
    r"\set twelve random(100000000000, 999999999999)",
    r"\set lock random(1, 9000000000000000000)",
)
# A name after a single colon; a cast has two.
_PLACEHOLDER = re.compile(r"(?<!:):([a-z_]+)\b")


def write_scripts(
    statements: list[dict[str, Any]], slots: Slots, folder: Path, nights: int
) -> list[Path]:
    """Write a script for each of some suites; pgbench picks one at random for every booking. Each
    client has this many `nights`.

    Raises:
        LabError: a statement has an unknown placeholder.
    """
    head = "\n".join(line.format(nights=nights) for line in _VARIABLES)
    scripts = []
    for number, (suite, guests) in enumerate(list(slots.suites.items())[:_SUITES]):
        values = _values(suite, guests, slots)
        body = "\n".join(
            f"{_fill_placeholders(statement['sql'], values)};" for statement in statements
        )
        scripts.append(folder / f"{number:03}.sql")
        scripts[-1].write_text(f"{head}\n{body}\n")
    return scripts


def _fill_placeholders(statement: str, values: dict[str, str]) -> str:
    """Return the statement on one line, with a value for each placeholder."""

    def value(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise LabError(
                f"`manage.py booking_statements` has a placeholder :{match[1]}. Known: "
                f"{', '.join(values)} (load_lab/bench/pgbench.py)."
            )
        return values[match[1]]

    return _PLACEHOLDER.sub(value, " ".join(statement.rstrip("; \n").split()))


def _argv(scripts: list[Path], cpus: str, clients: int, seconds: float) -> list[str]:
    return [
        *die_with_parent.argv_prefix(),
        *("taskset", "-c", cpus, str(require("pgbench"))),
        *("--client", str(clients), "--jobs", str(_THREADS), "--protocol", _PROTOCOL),
        # Without VACUUM of pgbench's own tables, which do not exist here.
        *("--no-vacuum", "--time", str(max(round(seconds), 1))),
        *("--define", "count=0"),
        *(part for script in scripts for part in ("--file", str(script))),
    ]


def _run(argv: list[str], settings: Settings, seconds: float) -> str:
    process = subprocess.run(
        argv,
        env={
            **os.environ,
            **library_env(),
            **mark(current_state(), load=True),
            **_connection(settings),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds + _GRACE_SECONDS,
    )
    if process.returncode:
        raise LabError(f"pgbench failed: {process.stderr.strip()[-500:]}")
    return process.stdout


def _connection(settings: Settings) -> dict[str, str]:
    """Return the backend's connection parameters: the same role and authentication."""
    return {
        "PGHOST": LOOPBACK,
        "PGPORT": str(settings.LAB_POSTGRES_PORT),
        "PGDATABASE": DATABASE,
        "PGUSER": ROLE,
        "PGPASSWORD": current_state().secret(PASSWORD),
    }


def sample_of(output: str, busy: Busy, seconds: float) -> Sample:
    """Return the sample of pgbench's output: bookings per second after the initial connection.

    Raises:
        LabError: the output contains no rate.
    """
    count = re.search(r"^number of transactions actually processed: (\d+)", output, re.MULTILINE)
    rate = re.search(r"^tps = ([\d.]+) \(without initial connection time\)", output, re.MULTILINE)
    failed = re.search(r"^number of failed transactions: (\d+)", output, re.MULTILINE)
    if count is None or rate is None:
        raise LabError(f"pgbench printed no rate: {output[-500:]}")
    failures = int(failed[1]) if failed else 0
    wrong = f"{failures} failed transactions" if failures else ""
    return Sample(float(rate[1]), 0.0, int(count[1]), seconds, busy, wrong)
