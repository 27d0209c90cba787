"""Run k6: its environment, its CPUs, its outcome."""

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from lab_settings.types import cpu_numbers

from load_lab.console import note
from load_lab.errors import Interrupted, LabError, UsageError
from load_lab.load.generators import SUMMARY, write_merged_summary
from load_lab.load.kubernetes.cluster_load import cluster_env, push_login
from load_lab.load.kubernetes.manifests import Manifest
from load_lab.load.kubernetes.sender import rendered
from load_lab.load.load import MIN_THREADS, Load
from load_lab.load.page_change import PageChange
from load_lab.load.page_watch import PageWatch, pages_of
from load_lab.load.process import (
    INTERRUPTED,
    THRESHOLDS_FAILED,
    End,
    check_options,
    inspect_load,
    never,
)
from load_lab.load.sender import sender
from load_lab.load.setting_watch import SettingChange, SettingWatch
from load_lab.load.summary import read_summary
from load_lab.load.workloads import Profile
from load_lab.machine.cpu_use import CpuSampler, CpuUse
from load_lab.machine.cpus import choose_cpus
from load_lab.machine.logged_errors import NONE_LOGGED, LoggedErrors
from load_lab.machine.observation import Signals
from load_lab.machine.observer import SignalSampler, Watched
from load_lab.machine.waking import wake_seconds
from load_lab.metrics.plan import Plan
from load_lab.metrics.push import push, push_end
from load_lab.paths import lab_file, project
from load_lab.settings import Settings
from load_lab.settings.env_file import read_env_file
from load_lab.stack.engine import Engine, settings_of
from load_lab.stack.http import USER_AGENT
from load_lab.targets.declared import PUBLIC_RATE, is_public
from load_lab.targets.target import Target

# Profiles from whose loads no capacity is predicted.
_UNPREDICTING = (Profile.SMOKE, Profile.TRIAL, Profile.CLOSED, Profile.CLOSED_RAMP)
# Variables of k6 that are started by hand on several hosts, perhaps in the same shell.
_BY_HAND = ("SEGMENT", "GENERATORS", "PREPARED", "PREPARED_PATH", "START_AT", "START_URL")


@dataclass(frozen=True)
class Run:
    """A k6 run that ended: its files, and the CPU use during the run.

    `cpu_speed` is the speed of the target's CPUs just before and just after (machine/noise.py),
    `target_cpus` is their number, `wake_ms` what waking them costs (machine/waking.py).
    `stopped_at` is when the lab stopped the run early (Unix time); None when it ran to its end.
    `interrupted`: Ctrl-C, TERM or HUP was the reason. `clock_jump`: by how many seconds the
    machine's clock was set forward during the run, negative if back. `restarted` names the services
    whose main process was replaced during the run. `lost` names the generators that failed, of
    several. `signals`, `rejections`, `logged` and `unseen`: see load_lab/machine/observer.py.
    `page_change` is why the lab stopped a load whose pages turned into others; `setting_changes`
    came during it.
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
    target_cpus: int | None = None
    wake_ms: float | None = None
    stopped_at: float | None = None
    interrupted: bool = False
    clock_jump: float = 0.0
    restarted: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    signals: list[Signals] = field(default_factory=list)
    rejections: dict[str, int] = field(default_factory=dict)
    logged: LoggedErrors = NONE_LOGGED
    unseen: tuple[str, ...] = ()
    page_change: PageChange | None = None
    setting_changes: tuple[SettingChange, ...] = ()
    unseen_services: tuple[str, ...] = ()

    @property
    def summary_file(self) -> Path:
        return self.folder / SUMMARY


class InterruptedRun(Interrupted):
    """A signal ended `run`; k6 has written its summary."""

    def __init__(self, run: Run) -> None:
        super().__init__(f"The test was interrupted. What k6 counted is in {run.folder}.")
        self.run = run


def _new_folder(testid: str) -> Path:
    """Return the path of the run's files.

    Raises:
        UsageError: the name is not valid for a folder and a label, or already exists.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}", testid):
        raise UsageError(
            f"'{testid}' can't name a run. Up to 80 letters, digits, dots, dashes and underscores."
        )
    folder = project().results / testid
    if folder.exists():
        raise UsageError(f"There is a run named {testid} already, in {folder}. Name it otherwise.")
    return folder


def check(engine: Engine, target: Target, load: Load) -> None:
    """Check a load that will run later, like `inspect_load`.

    Raises:
        UsageError: k6 rejects a name or a value.
    """
    inspect_load(
        engine.k6(
            settings_of(engine), k6_env(engine, target, _allowed(target, load), project().folder)
        )
    )


def _allowed(target: Target, load: Load) -> Load:
    """Return the load with what a host on a public network may get.

    Raises:
        UsageError: its rate is higher.
    """
    return load.capped(PUBLIC_RATE) if is_public(target.url) else load


def render(engine: Engine, target: Target, load: Load) -> list[Manifest]:
    """Return the manifests of a load for a cluster.

    Raises:
        UsageError: k6 rejects a name or a value, or an address is this machine's own.
    """
    settings = settings_of(engine)
    load = _allowed(target, load)
    with TemporaryDirectory() as folder:
        env = cluster_env(k6_env(engine, target, load, Path(folder)))
        command = engine.k6(settings, env)
        inspect_load(command)
        check_options(command, load.k6_options)
        return rendered(engine, settings, env, load, Path(folder))


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
    _warn_of_generators(load, settings)
    target.require_ready()
    load = _allowed(target, load)
    quiet = folder is not None
    folder = folder or _new_folder(load.testid)
    engine.stop_load()
    env = k6_env(engine, target, load, folder)
    if load.cluster:
        load.cluster.check()
        env = cluster_env(env) | push_login()
    command = engine.k6(settings, env)
    plan = inspect_load(command)
    check_options(command, load.k6_options)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SUMMARY).unlink(missing_ok=True)
    before = {**engine.pids(), **target.pids}
    here = 1 if load.cluster else load.generators
    cpus = cpu_numbers(choose_cpus(settings).target)
    wake = None if load.profile in _UNPREDICTING else wake_seconds(frozenset(cpus))
    sampler = CpuSampler(settings, engine.pids(), lambda: target.pids, load.testid, here)
    stop = partial(should_stop, plan, sampler.uses) if should_stop and plan else never
    pages = PageWatch(load.testid, settings.prometheus_url, pages_of(env))
    changes = SettingWatch(engine, settings)

    def is_over() -> bool:
        changes()
        return pages() or stop()

    watched = _watched(target, load)
    watching = SignalSampler(
        watched,
        cpu_numbers(choose_cpus(settings).load),
        lambda second: push(settings.push_url, load.testid, second, sampler.uses[-1:]),
    )
    sending = sender(engine, settings, env, load, folder, quiet=quiet)
    with sending as send, sampler, watching:
        started, steady = time.time(), time.monotonic()
        end, logs = send(is_over)
        ended = time.time()
        changes()
        # NTP's slow corrections change both clocks; only a jump is in their difference.
        clock_jump = ended - started - (time.monotonic() - steady)
    if watching.seconds:
        push_end(settings.push_url, load.testid, watching.seconds, sampler.uses)
    run = Run(
        load,
        target,
        folder,
        started,
        ended,
        thresholds_failed=THRESHOLDS_FAILED in end.codes,
        cpu=sampler.uses,
        settings=settings,
        cpu_speed=sampler.speed(),
        target_cpus=len(cpus),
        wake_ms=None if wake is None else round(1000 * wake, 2),
        stopped_at=end.stopped_at,
        interrupted=end.interrupted,
        clock_jump=round(clock_jump, 3),
        restarted=_restarted(before, engine, target),
        lost=_lost(end, load.names),
        signals=watching.seconds,
        rejections=watching.rejections,
        logged=watching.logged,
        unseen=tuple(watching.lost),
        page_change=pages.change,
        setting_changes=tuple(changes.changes),
        unseen_services=tuple(watched.find_unseen()),
    )
    _check_outcome(end, run, logs)
    return run


def _watched(target: Target, load: Load) -> Watched:
    """Return what is looked at; the connections of pods are not visible from here."""
    watched = target.watched()
    return replace(watched, server_ports=()) if load.cluster else watched


def _warn_of_generators(load: Load, settings: Settings) -> None:
    cpus = len(cpu_numbers(choose_cpus(settings).load))
    if load.cluster is None and load.generators > max(cpus, 1):
        note(
            f"{load.generators} generators share {cpus} CPU(s). More than one for each CPU send no "
            "more requests: a k6 uses all CPUs that it gets."
        )


def _restarted(before: Mapping[str, int], engine: Engine, target: Target) -> tuple[str, ...]:
    """Return the services whose main process is another one than before."""
    after: dict[str, int] = {}
    # Of a stack or a target that went down, another check tells more.
    with suppress(LabError):
        after = {**engine.pids(), **target.pids}
    return tuple(name for name, pid in before.items() if after.get(name, pid) != pid)


def _lost(end: End, names: Sequence[str]) -> tuple[str, ...]:
    """Return the generators that ended before the load did, of several."""
    return tuple(name for name, failed in zip(names, end.failed, strict=True) if name and failed)


def k6_env(engine: Engine, target: Target, load: Load, folder: Path) -> dict[str, str]:
    """Return the environment of k6, which writes its summary into `folder`."""
    settings = settings_of(engine)
    push = read_env_file(lab_file("k6/push.env"))
    return {
        **push,
        **dict.fromkeys(_BY_HAND, ""),
        "K6_USER_AGENT": USER_AGENT,
        "K6_PROMETHEUS_RW_SERVER_URL": engine.push_url(settings),
        "BASE_URL": target.url,
        "GOMAXPROCS": os.environ.get("GOMAXPROCS") or str(_threads(settings)),
        "CLIENT_TIMEOUT": str(settings.LAB_CLIENT_TIMEOUT),
        **target.k6_env(),
        "SUMMARY_PATH": str(folder / SUMMARY),
        **load.env(),
    }


def _threads(settings: Settings) -> int:
    return max(MIN_THREADS, len(cpu_numbers(choose_cpus(settings).load)))


def _check_outcome(end: End, run: Run, logs: list[Path]) -> None:
    where = f"see {', '.join(map(str, logs))}" if logs else "its message stands above"
    if run.load.is_shared:
        write_merged_summary(run.load, run.folder)
    if end.interrupted:
        raise InterruptedRun(run)
    if not run.load.is_shared:
        (code,) = end.codes
        if code not in (0, THRESHOLDS_FAILED, INTERRUPTED):
            raise LabError(f"k6 ended with exit code {code}; {where}.")
    if run.lost and not _has_begun(run):
        names = ", ".join(run.lost)
        raise LabError(f"Generator {names} ended before the load began; {where}.")
    if not run.summary_file.exists():
        raise LabError(f"k6 ended without a summary at {run.summary_file}; {where}.")


def _has_begun(run: Run) -> bool:
    return run.summary_file.exists() and read_summary(run.summary_file).started is not None
