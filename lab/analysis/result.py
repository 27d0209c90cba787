"""What a run leaves in results/: one JSON document, and a picture where there is a curve."""

import json
import platform
import shutil
import subprocess
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from lab.analysis.breakpoint import Bounds
from lab.analysis.collect import Collected
from lab.analysis.figures import staleness, unfinished, websockets
from lab.analysis.verdict import Verdict
from lab.host.cpus import choose_cpus
from lab.host.steal import mean_share
from lab.load.k6 import Run
from lab.paths import ROOT
from lab.settings import Settings

# History of the format:
# 1: first.
# 2: `goodput` is that of the best window, `goodput_mean` what `goodput` was; CPU per service.
# 3: `recorded`: what of the run Prometheus has; `staleness`; outcomes `measured`, `unrecorded`.
# 4: `successes`, `answers_per_second`, `max_rps`, `p90_ms`, `retries`, `unfinished`, `websockets`,
#    `steal`, `cpu_speed`, `latency`; times are null where nothing ended that took any.
# 5: `rate` of a break point: what the target bore. `offered` is that of when it was seen.
SCHEMA_VERSION = 5


def write_result(
    run: Run,
    collected: Collected,
    verdict: Verdict,
    bounds: Bounds,
    engine: str,
    latency: dict[str, Any] | None,
) -> dict[str, Any]:
    """Write result.json and the pictures; returns the document."""
    files = {"folder": run.folder, "summary": run.summary, "result": run.folder / "result.json"}
    if collected.windows:
        # Altair takes half a second to import, which every other command would pay.
        from lab.charts.run import draw

        title = _title(run, collected, run.settings)
        files["picture"] = draw(
            collected.windows, verdict, bounds, title, run.folder / run.load.profile
        )
    document = {
        **headline(run, collected, verdict),
        "files": {name: relative(path) for name, path in files.items()},
        "schema_version": SCHEMA_VERSION,
        "bounds": asdict(bounds),
        "settings": run.settings.model_dump(),
        "host": host(run.settings, engine),
        "latency": latency,
        **series(run, collected),
    }
    write_json(files["result"], document)
    return document


def _title(run: Run, collected: Collected, settings: Settings) -> str:
    """What was measured, on what: a picture travels without its document."""
    return (
        f"{run.load.profile} of {collected.summary['lab']['scenario']}; "
        f"{settings.LAB_SERVER} × {settings.LAB_WORKERS}, detail {settings.LAB_DETAIL}, "
        f"booking {settings.LAB_BOOKING}, Redis cache {settings.LAB_REDIS_CACHE}, "
        f"Nginx cache {settings.LAB_NGINX_CACHE}"
    )


def without_series(document: dict[str, Any]) -> dict[str, Any]:
    """The document less its time series, for the terminal."""
    return {name: value for name, value in document.items() if name not in _SERIES}


_SERIES = ("windows", "cpu", "looks")


def headline(run: Run, collected: Collected, verdict: Verdict) -> dict[str, Any]:
    """The figures of a run, and what they say."""
    return {
        "testid": run.load.testid,
        "profile": run.load.profile,
        "scenario": collected.summary["lab"]["scenario"],
        "started": datetime.fromtimestamp(run.started, UTC).isoformat(timespec="seconds"),
        "seconds": round(collected.load_seconds, 1),
        **_counted(collected),
        **_rates(collected),
        **{
            f"p{share}_ms": collected.milliseconds("http_req_duration", f"p({share})")
            for share in (50, 90, 95, 99)
        },
        "dropped_iterations": int(collected.value("dropped_iterations", "count")),
        "outcome": verdict.outcome,
        "limited_by": verdict.limited_by,
        "verdict": verdict.text,
        "break_point": _break_point(verdict),
        "recorded": asdict(collected.recorded),
        "staleness": staleness(collected),
        "websockets": websockets(collected),
        "steal": mean_share(use.steal for use in run.cpu),
        "cpu_speed": run.cpu_speed,
    }


def _counted(collected: Collected) -> dict[str, int | None]:
    requests = int(collected.value("http_reqs", "count"))
    failed = int(collected.value("http_req_failed", "passes"))
    return {
        "requests": requests,
        "successes": requests - failed,
        "failed": failed,
        "retries": int(collected.value("lab_retries", "count")),
        "unfinished": unfinished(collected),
    }


def _rates(collected: Collected) -> dict[str, float | None]:
    """Per second: of the whole load with its last answers, but where the name says otherwise."""
    counted, seconds = _counted(collected), collected.load_seconds
    mean = collected.value("lab_answers_in_time", "count") / seconds
    planned, most = collected.planned_seconds, collected.max_rps
    found = {
        "rps": (counted["requests"] or 0) / seconds,
        "answers_per_second": (counted["successes"] or 0) / planned if planned else None,
        "goodput": max((window.goodput for window in collected.windows), default=mean),
        "goodput_mean": mean,
        "max_rps": most,
    }
    return {name: None if rate is None else round(rate, 2) for name, rate in found.items()}


def series(run: Run, collected: Collected) -> dict[str, Any]:
    """What happened second by second."""
    return {
        "windows": [asdict(window) for window in collected.windows],
        "cpu": [asdict(use) for use in run.cpu],
    }


def _break_point(verdict: Verdict) -> dict[str, Any] | None:
    found = verdict.break_point
    if found is None:
        return None
    use = verdict.cpu_at_break
    return {
        "rate": found.rate,
        "offered": found.offered,
        "goodput": found.goodput,
        "seconds_into_test": found.window.end,
        "reasons": list(found.reasons),
        "target_cpu": None if use is None else round(use.target, 3),
        "generator_cpu": None if use is None else round(use.load, 3),
    }


def host(settings: Settings, engine: str) -> dict[str, Any]:
    """The machine, and how target and generator share it."""
    cpus = choose_cpus(settings)
    return {
        "engine": engine,
        "cpus": psutil.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "system": platform.platform(),
        "target_cpus": cpus.target,
        "load_cpus": cpus.load,
        "shared_cpus": cpus.shared,
        "commit": _commit(),
    }


def _commit() -> str | None:
    if not shutil.which("git"):
        return None
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip() or None


def relative(path: Path) -> str:
    """A file's name from the project's folder on."""
    return str(path.relative_to(ROOT))


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Whole or not at all."""
    scratch = path.with_suffix(".new")
    scratch.write_text(json.dumps(document, indent=2) + "\n")
    scratch.replace(path)
