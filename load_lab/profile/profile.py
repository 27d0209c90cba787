"""`lab profile`: where the backend's time goes under load, with the current settings."""

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from load_lab.console import step
from load_lab.errors import LabError
from load_lab.load.k6 import Run, check, run_k6
from load_lab.load.load import Load, new_testid
from load_lab.load.process import has_begun
from load_lab.load.summary import read_summary
from load_lab.paths import project
from load_lab.profile.flamegraph import HotFunction, hottest
from load_lab.profile.recorder import RATE, Recorder, check_permission
from load_lab.results.provenance import SCHEMA_VERSION, host, relative, write_json
from load_lab.run.measurement import check_target_survived
from load_lab.settings import Settings
from load_lab.stack.engine import Engine, settings_of
from load_lab.targets.reference.app import ReferenceApp

_COUNT = 10
# With fewer samples the ten functions would be random.
MIN_SAMPLES = 20


@dataclass(frozen=True)
class ProfileOptions:
    """The load. Without a rate, one client for each request that the backend can process at once:
    every worker is busy and none has a queue.
    """

    scenario: str
    seconds: int
    rate: int | None = None

    def load(self, settings: Settings) -> Load:
        arrivals = self.rate is not None
        threads = settings.LAB_THREADS if settings.LAB_SERVER == "gunicorn-gthread" else 1
        return Load(
            profile="hold" if arrivals else "closed",
            scenario=self.scenario,
            rate=self.rate,
            vus=None if arrivals else settings.LAB_WORKERS * threads,
            duration=f"{self.seconds}s",
            testid=new_testid("profile"),
        )


def profile(engine: Engine, options: ProfileOptions) -> dict[str, Any]:
    """Load the running stack, record its workers, write both, and return the result.

    Raises:
        UsageError: k6 rejects the arguments.
        LabError: the stack is not running, py-spy may not attach, or the backend was idle.
    """
    load = options.load(settings_of(engine))
    target = ReferenceApp(engine)
    check(engine, target, load)
    pid = backend_pid(engine)
    check_permission(pid)
    folder = project().results / load.testid
    recorder = Recorder(pid, folder / "profile.svg", partial(has_begun, folder / "k6.log"))
    with step(f"Recording {options.seconds} s of {options.scenario} under load"), recorder:
        run = run_k6(engine, target, load, folder)
    check_target_survived(run)
    return _write_document(run, recorder, options, engine)


def backend_pid(engine: Engine) -> int:
    """Return the top process of the server.

    Raises:
        LabError: the process is not visible from here.
    """
    pids = engine.pids()
    if "backend" not in pids:
        raise LabError(
            "The backend's processes can't be seen from here: it does not run, or runs in a "
            "separate machine (Docker Desktop). See `lab status`."
        )
    return pids["backend"]


def _write_document(
    run: Run, recorder: Recorder, options: ProfileOptions, engine: Engine
) -> dict[str, Any]:
    samples, functions = hottest(run.folder / "profile.svg")
    if samples < MIN_SAMPLES:
        raise LabError(
            f"The backend had next to nothing to do in these {recorder.seconds:.0f} s ({samples} "
            "samples): a cache in front of it answered "
            f"(LAB_NGINX_CACHE={run.settings.LAB_NGINX_CACHE}), or k6 sent too little. Give it "
            f"more --duration, no --rate, or LAB_NGINX_CACHE=off. k6's log: {run.folder / 'k6.log'}"
        )
    document = _measurements(run, recorder) | {
        "scenario": options.scenario,
        "samples": samples,
        "samples_per_second": RATE,
        "hottest": [shares(function, samples) for function in functions[:_COUNT]],
        "settings": run.settings.model_dump(),
        "host": host(run.settings, engine.name),
    }
    write_json(run.folder / "profile.json", document)
    return document


def _measurements(run: Run, recorder: Recorder) -> dict[str, Any]:
    """Return the requests sent, their CPU cost, and the files."""
    summary = read_summary(run.summary_file)
    requests = int(summary.value("http_reqs", "count"))
    per_request = round(recorder.cpu_seconds / requests * 1000, 3) if requests else None
    files = {"svg": "profile.svg", "profile": "profile.json", "summary": "k6-summary.json"}
    return {
        "schema_version": SCHEMA_VERSION,
        "testid": run.load.testid,
        "load": run.load.env(),
        "seconds": round(recorder.seconds, 1),
        "requests": requests,
        "failed": int(summary.value("http_req_failed", "passes")),
        "cpu_seconds": round(recorder.cpu_seconds, 2),
        "cpu_ms_per_request": per_request,
        "files": {name: relative(run.folder / file) for name, file in files.items()},
    }


def shares(function: HotFunction, samples: int) -> dict[str, Any]:
    """Return the shares of all samples, in percent."""
    percent = {
        "self_percent": round(function.self_samples / samples * 100, 1),
        "cumulative_percent": round(function.all_samples / samples * 100, 1),
    }
    return percent | {name: asdict(function)[name] for name in ("function", "where")}
