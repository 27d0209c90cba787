"""`lab profile`: where a server's time goes under load, and which statements its requests need."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from load_lab.console import step
from load_lab.errors import LabError
from load_lab.load.k6 import Run, check, run_k6
from load_lab.load.load import Load, new_testid
from load_lab.load.process import has_begun
from load_lab.load.summary import read_summary
from load_lab.machine.cpus import awake, choose_cpus
from load_lab.paths import project
from load_lab.profile.flamegraph import hottest
from load_lab.profile.ranking import MIN_SAMPLES, function_rows, headline, own_rows, statement_rows
from load_lab.profile.recorder import RATE, Recorder, check_permission, find_server
from load_lab.results.provenance import SCHEMA_VERSION, host, relative, write_json
from load_lab.run.measurement import check_target_survived
from load_lab.stack.engine import settings_of
from load_lab.targets.statements import Statements
from load_lab.targets.subject import Running, Subject

# What a new process imports and connects with its first requests is not recorded.
_WARM_SECONDS = 3
# For a server of which it is not known how many requests it works on at once.
_AT_ONCE = 4


@dataclass(frozen=True)
class ProfileOptions:
    """The load. Without a rate, one client for each request that the subject works on at once, if
    that is known: every worker is busy and none has a queue. `only` selects operations of a mix.
    """

    seconds: int
    rate: float | None = None
    only: str | None = None

    def load(self, subject: Subject) -> Load:
        arrivals = self.rate is not None
        return Load(
            profile="trial" if arrivals else "closed",
            scenario=subject.scenario,
            rate=self.rate,
            vus=None if arrivals else subject.concurrency or _AT_ONCE,
            duration=f"{self.seconds}s",
            only=self.only,
            testid=new_testid("profile"),
        )


def profile(
    subject: Subject, options: ProfileOptions, after: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Load the subject, record its server, write both, and return the result. `after`: of which
    stored run.

    Raises:
        UsageError: k6 rejects the arguments.
        LabError: the stack is not running, py-spy can't look into the server, or it was idle.
    """
    # Before anything is started.
    _ = subject.settings
    what = options.only or subject.scenario or subject.name
    with subject.used(), subject.running() as running:
        load = options.load(subject)
        check(running.engine, running.target, load)
        pid = find_server(running.target)
        check_permission(pid)
        folder = project().results / load.testid
        warm = replace(load, duration=f"{_WARM_SECONDS}s", testid=f"{load.testid}-warm")
        with step(f"Warming up {what}"):
            run_k6(running.engine, running.target, warm, folder / "warm")
        begin = _Begin(running, folder / "k6.log")
        cpus = choose_cpus(settings_of(running.engine)).load
        recorder = Recorder(pid, folder / "profile.svg", cpus, begin)
        # py-spy takes waiting for a CPU that wakes up, after each statement, for work.
        with step(f"Recording {options.seconds} s of {what} under load"), awake(), recorder:
            run = run_k6(running.engine, running.target, load, folder)
        found = _statements(run, running, begin.statements)
        check_target_survived(run)
        head = {
            "target": subject.name,
            "scenario": subject.scenario or "mix",
            "only": options.only,
            "after": after,
            "host": host(run.settings, running.engine.name),
        }
        return _write(run, recorder, head, found)


@dataclass
class _Begin:
    """Returns whether k6's log shows that the load began; reads the statements at that moment."""

    running: Running
    log: Path
    statements: Statements | None = None

    def __call__(self) -> bool:
        if not has_begun(self.log):
            return False
        self.statements = self.running.read_statements()
        return True


def _statements(run: Run, running: Running, before: Statements | None) -> dict[str, Any]:
    """Return the statements that cost most since then, or why there are none."""
    now = running.read_statements(texts=True)
    if before is None or now is None:
        return {"statements": [], "no_statements": running.why_no_statements()}
    summary = read_summary(run.summary_file)
    requests = int(summary.value("http_reqs", "count"))
    mean_ms = summary.value("http_req_duration", "avg")
    rows = statement_rows(now.own_since(before), requests, mean_ms) if requests and mean_ms else []
    return {
        "statements": rows,
        "no_statements": ""
        if rows
        else f"the requests spent no time in the database {now.database}",
    }


def _write(
    run: Run, recorder: Recorder, head: dict[str, Any], found: dict[str, Any]
) -> dict[str, Any]:
    samples, idle, functions = hottest(run.folder / "profile.svg")
    if samples < MIN_SAMPLES and not found["statements"]:
        raise LabError(
            f"The server had next to nothing to do in these {recorder.seconds:.0f} s ({samples} "
            "samples): a cache in front of it answered, or k6 sent too little. Give it more "
            f"--duration, no --rate, or switch the cache off. Loaded: {run.target.description}. "
            f"k6's log: {run.folder / 'k6.log'}"
        )
    rows = function_rows(functions, samples)
    # py-spy's paths begin in a folder of sys.path; this one is the app's.
    own = own_rows(functions, samples, lambda path: (recorder.folder / path).is_file())
    name = head["only"] or f"{head['target']}, {head['scenario']}"
    document = {
        **_measurements(run, recorder),
        **head,
        "samples": samples,
        "idle_samples": idle,
        "samples_per_second": RATE,
        "hottest": rows,
        "own": own,
        **found,
        "headline": headline(name, rows, found["statements"]),
        "settings": run.settings.model_dump(),
    }
    write_json(run.folder / "profile.json", document)
    return document


def _measurements(run: Run, recorder: Recorder) -> dict[str, Any]:
    """Return the requests sent, their CPU cost, and the files."""
    summary = read_summary(run.summary_file)
    requests = summary.requests
    per_request = round(recorder.cpu_seconds / requests * 1000, 3) if requests else None
    files = {"svg": "profile.svg", "profile": "profile.json", "summary": "k6-summary.json"}
    return {
        "schema_version": SCHEMA_VERSION,
        "testid": run.load.testid,
        "load": run.load.env(),
        "seconds": round(recorder.seconds, 1),
        "requests": requests,
        "failed": summary.failed,
        "mean_ms": summary.milliseconds("http_req_duration", "avg"),
        "cpu_seconds": round(recorder.cpu_seconds, 2),
        "cpu_ms_per_request": per_request,
        "files": {name: relative(run.folder / file) for name, file in files.items()},
    }
