"""Run k6: its environment, its CPUs, its outcome."""

import os
import re
import secrets
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from lab.errors import Interrupted, LabError, UsageError
from lab.host.cpus import choose_cpus, expand
from lab.host.sampler import CpuSampler, CpuUse
from lab.load.plan import Plan
from lab.load.process import End, check_options, execute, inspect_load, never, truncate_log
from lab.paths import RESULTS, ROOT
from lab.settings import Settings
from lab.settings.env_file import read_env_file
from lab.stack.engine import Engine, K6Command, settings_of
from lab.targets.declared import PUBLIC_RATE, is_public
from lab.targets.target import Target

# k6's exit codes, https://pkg.go.dev/go.k6.io/k6/errext/exitcodes
_THRESHOLDS_FAILED = 99
_INTERRUPTED = 105
# Minimum of k6's GOMAXPROCS. Go's default is one per CPU; with a single one, the garbage collector
# delays every response that arrives while it runs (docs/measured/calibration.md). With four or more
# threads, virtual users that start together delay the first requests of a load.
MIN_THREADS = 2


@dataclass(frozen=True)
class Load:
    """Options of a k6 run; an option that is not set has the profile's default.

    `only` is a pattern of names of operations, for the scenario `replay`; `speed` is for the
    profile `times`. `k6_options` are added to `k6 run`.
    """

    profile: str
    scenario: str | None = None
    rate: int | None = None
    duration: str | None = None
    vus: int | None = None
    route: str | None = None
    connections: int | None = None
    retries: int | None = None
    bound_ms: int = 1000
    max_vus: int | None = None
    start_rate: float | None = None
    journey_details: int | None = None
    only: str | None = None
    speed: float | None = None
    testid: str = field(default="")
    k6_options: tuple[str, ...] = ()

    def capped(self, rate: int) -> "Load":
        """Return the load with at most `rate` requests/s, whatever the profile.

        Raises:
            UsageError: it has a higher rate.
        """
        if self.rate is not None and self.rate > rate:
            raise UsageError(
                f"--rate {self.rate} is too high for a host that is not on your network. Allowed: "
                f"up to {rate}."
            )
        has_rate = self.profile not in ("smoke", "closed", "closed-ramp", "times")
        highest = rate if self.rate is None and has_rate else self.rate
        return replace(self, rate=highest, k6_options=(*self.k6_options, "--rps", str(rate)))

    def env(self) -> dict[str, str]:
        """Return the variables that k6/main.js reads."""
        values = {
            "PROFILE": self.profile,
            "SCENARIO": self.scenario,
            "RATE": self.rate,
            "START_RATE": self.start_rate,
            "DURATION": self.duration,
            "VUS": self.vus,
            "MAX_VUS": self.max_vus,
            "ROUTE": self.route,
            "CONNECTIONS": self.connections,
            "JOURNEY_DETAILS": self.journey_details,
            "ONLY": self.only,
            "SPEED": self.speed,
            "RETRIES": self.retries,
            "RESPONSE_TIME_BOUND": self.bound_ms,
            "TESTID": self.testid,
        }
        return {name: str(value) for name, value in values.items() if value is not None}


@dataclass(frozen=True)
class Run:
    """A k6 run that ended: its files, and the CPU use during the run.

    `cpu_speed` is the speed of the target's CPUs just before and just after, see lab/host/noise.py.
    `stopped_at` is when the lab stopped the run early (Unix time); None when it ran to its end.
    `interrupted`: Ctrl-C, TERM or HUP was the reason. `clock_jump`: by how many seconds the
    machine's clock was set forward during the run, negative if back. `restarted` names the services
    whose main process was replaced during the run.
    """

    load: Load
    target: Target
    folder: Path
    started: float
    ended: float
    thresholds_failed: bool
    cpu: list[CpuUse]
    settings: Settings
    cpu_speed: float | None = None
    stopped_at: float | None = None
    interrupted: bool = False
    clock_jump: float = 0.0
    restarted: tuple[str, ...] = ()

    @property
    def summary_file(self) -> Path:
        return self.folder / "k6-summary.json"


class InterruptedRun(Interrupted):
    """A signal ended `run`; k6 has written its summary."""

    def __init__(self, run: Run) -> None:
        super().__init__(f"The test was interrupted. What k6 counted is in {run.folder}.")
        self.run = run


def new_testid(profile: str) -> str:
    """Return a name for one run: profile, UTC time, and four digits to distinguish equal
    seconds.
    """
    return f"{profile}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def _new_folder(testid: str) -> Path:
    """Return the path of the run's files.

    Raises:
        UsageError: the name is not valid for a folder and a label, or already exists.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}", testid):
        raise UsageError(
            f"'{testid}' can't name a run. Up to 80 letters, digits, dots, dashes and underscores."
        )
    folder = RESULTS / testid
    if folder.exists():
        raise UsageError(f"There is a run named {testid} already, in {folder}. Name it otherwise.")
    return folder


def check(engine: Engine, target: Target, load: Load) -> None:
    """Check a load that will run later, like `inspect_load`.

    Raises:
        UsageError: k6 rejects a name or a value.
    """
    inspect_load(
        engine.k6(settings_of(engine), k6_env(engine, target, _allowed(target, load), ROOT))
    )


def _allowed(target: Target, load: Load) -> Load:
    """Return the load with what a host on a public network may get.

    Raises:
        UsageError: its rate is higher.
    """
    return load.capped(PUBLIC_RATE) if is_public(target.url) else load


def run_k6(
    engine: Engine,
    target: Target,
    load: Load,
    folder: Path | None = None,
    should_stop: Callable[[Plan, list[CpuUse]], bool] | None = None,
) -> Run:
    """Load the target with the running stack's k6 and wait for its end.

    With a `folder`, the run's files are written there, and k6's messages to its k6.log. If the
    profile may stop early, `should_stop` is called every second with its plan and the CPU use so
    far; once it returns true, k6 is interrupted and writes its summary. Requests in flight are then
    cut off.

    Raises:
        UsageError: k6 rejects a name or a value.
        InterruptedRun: Ctrl-C, TERM or HUP arrived.
        LabError: the stack is not running, the target is not ready, or k6 failed.
    """
    settings = settings_of(engine)
    target.require_ready()
    load = _allowed(target, load)
    log = folder / "k6.log" if folder else None
    folder = folder or _new_folder(load.testid)
    engine.stop_load()
    command = engine.k6(settings, k6_env(engine, target, load, folder))
    plan = inspect_load(command)
    check_options(command, load.k6_options)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "k6-summary.json").unlink(missing_ok=True)
    before = {**engine.pids(), **target.pids}
    sampler = CpuSampler(settings, engine.pids(), lambda: target.pids)
    stop = partial(should_stop, plan, sampler.uses) if should_stop and plan else never
    with sampler:
        started, steady = time.time(), time.monotonic()
        end = _execute(command, load.k6_options, log, stop)
        ended = time.time()
        # NTP's slow corrections change both clocks; only a jump is in their difference.
        clock_jump = ended - started - (time.monotonic() - steady)
    run = Run(
        load,
        target,
        folder,
        started,
        ended,
        thresholds_failed=end.code == _THRESHOLDS_FAILED,
        cpu=sampler.uses,
        settings=settings,
        cpu_speed=sampler.speed(),
        stopped_at=end.stopped_at,
        interrupted=end.interrupted,
        clock_jump=round(clock_jump, 3),
        restarted=_restarted(before, engine, target),
    )
    _check_outcome(end, run, f"see {log}" if log else "its message stands above")
    return run


def _restarted(before: Mapping[str, int], engine: Engine, target: Target) -> tuple[str, ...]:
    """Return the services whose main process is another one than before."""
    after: dict[str, int] = {}
    # Of a stack or a target that went down, another check tells more.
    with suppress(LabError):
        after = {**engine.pids(), **target.pids}
    return tuple(name for name, pid in before.items() if after.get(name, pid) != pid)


def _execute(
    command: K6Command,
    k6_options: tuple[str, ...],
    log: Path | None,
    should_stop: Callable[[], bool],
) -> End:
    """Run k6 with its messages on the terminal, or in the log, of which only the end is stored."""
    with log.open("w") if log else nullcontext(sys.stderr) as output:
        end = execute(command, output, should_stop, k6_options)
    if log:
        truncate_log(log)
    return end


def k6_env(engine: Engine, target: Target, load: Load, folder: Path) -> dict[str, str]:
    """Return the environment of k6, which writes its summary into `folder`."""
    settings = settings_of(engine)
    push = read_env_file(ROOT / "k6/push.env")
    return {
        **push,
        "K6_PROMETHEUS_RW_SERVER_URL": engine.push_url(settings),
        "BASE_URL": target.url,
        "GOMAXPROCS": os.environ.get("GOMAXPROCS") or str(_threads(settings)),
        "CLIENT_TIMEOUT": str(settings.LAB_CLIENT_TIMEOUT),
        **target.k6_env(),
        "SUMMARY_PATH": str(folder / "k6-summary.json"),
        **load.env(),
    }


def _threads(settings: Settings) -> int:
    return max(MIN_THREADS, len(expand(choose_cpus(settings).load)))


def _check_outcome(end: End, run: Run, where: str) -> None:
    code = end.code
    if end.interrupted:
        raise InterruptedRun(run)
    if code not in (0, _THRESHOLDS_FAILED, _INTERRUPTED):
        raise LabError(f"k6 ended with exit code {code}; {where}.")
    if not run.summary_file.exists():
        raise LabError(f"k6 ended without a summary at {run.summary_file}; {where}.")
