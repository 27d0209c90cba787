"""One load on a cluster: prepared and archived here, sent from there, its summaries read here."""

import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from lab_settings.secret_reader import PUSH_USER

from load_lab.console import note, step
from load_lab.errors import LabError, UsageError
from load_lab.interrupts import uninterrupted
from load_lab.load.kubernetes.cluster import Cluster, ClusterSilentError
from load_lab.load.kubernetes.manifests import ClusterLoad, manifests
from load_lab.load.load import MIN_THREADS
from load_lab.load.process import THRESHOLDS_FAILED, End, capture_output, error_message
from load_lab.paths import current_state, lab_file
from load_lab.stack.engine import K6Command

# From the archive to the first arrival: pods are scheduled, images pulled, virtual users created.
_START_SECONDS = 60.0
# A pod that is not there so long after the start will not take part.
_LATE_SECONDS = 30.0
_POLL_SECONDS = 2.0
# The API server may not answer for a while: it restarts, or the network does.
_PATIENCE_SECONDS = 60.0
# After the load: the last responses, and the operator, which looks at its jobs every 15 s.
_END_SECONDS = 180
# Printed by k6/lib/summary.js with SUMMARY_PATH=-.
_SUMMARY_LINE = "lab-summary "
# Reasons of a waiting container that do not go away by themselves.
_STUCK = ("ImagePullBackOff", "InvalidImageName", "CreateContainerConfigError")
# Names of the variables that nobody but the pods may read, and of those that only setup() needs.
K6_LOGIN = ("K6_PROMETHEUS_RW_USERNAME", "K6_PROMETHEUS_RW_PASSWORD")
SECRET_VARIABLES = (*K6_LOGIN, "TARGET_HEADERS")
_PUSH_URL = "K6_PROMETHEUS_RW_SERVER_URL"
_PUSH_EXAMPLE = "http://192.0.2.10:9092/api/v1/write"
_OF_SETUP = ("SETTINGS_URL", "LAB_TOKEN", "EXPECT_SETTINGS", "TARGET_EXPIRES", "PREPARED_PATH")


@dataclass(frozen=True)
class Variables:
    """The variables of a load, by who reads them: the archive, which anyone may read; the pods'
    environment; their Secret.
    """

    archive: Mapping[str, str]
    pods: Mapping[str, str]
    secrets: Mapping[str, str]


def variables_of(env: Mapping[str, str]) -> Variables:
    """Return the variables of k6 on a cluster; `env` is that of a k6 on this machine."""
    used = {name: value for name, value in env.items() if value and name not in _OF_SETUP}
    secrets = {name: used.pop(name) for name in SECRET_VARIABLES if name in used}
    # k6's own and Go's; an archive keeps only those that a script reads.
    pods = {name: used.pop(name) for name in list(used) if name.startswith(("K6_", "GOMAXPROCS"))}
    return Variables({**used, "SUMMARY_PATH": "-"}, pods, secrets)


def cluster_env(env: dict[str, str]) -> dict[str, str]:
    """Return k6's environment as pods need it: addresses that they reach, and the script's
    variables of the shell, which an archive does not read.

    Raises:
        UsageError: an address is this machine's own.
    """
    push_url = os.environ.get("PUSH_URL") or env[_PUSH_URL]
    return {
        **_script_variables(),
        **env,
        "BASE_URL": reachable(env["BASE_URL"], "BASE_URL", "http://192.0.2.10:8080"),
        _PUSH_URL: reachable(push_url, "PUSH_URL", _PUSH_EXAMPLE),
        "GOMAXPROCS": str(max(MIN_THREADS, math.ceil(pod_cpus()))),
    }


def _script_variables() -> dict[str, str]:
    document = yaml.safe_load((lab_file("docker-compose.load.yml")).read_text())
    names = document["services"]["load"]["environment"]
    return {name: os.environ[name] for name in names if name in os.environ and name not in K6_LOGIN}


def push_login() -> dict[str, str]:
    """Return name and password for the metrics ingress: the shell's, or this stack's own.

    Raises:
        UsageError: there is none.
    """
    given = {name: value for name in K6_LOGIN if (value := os.environ.get(name))}
    if len(given) == len(K6_LOGIN):
        return given
    try:
        return {K6_LOGIN[0]: PUSH_USER, K6_LOGIN[1]: current_state().secret("push_password")}
    except LabError as error:
        raise UsageError(
            f"The pods need the password of the metrics ingress, and there is none here: {error} "
            f"Set it: export {K6_LOGIN[0]}={PUSH_USER} {K6_LOGIN[1]}=…"
        ) from None


def reachable(address: str, variable: str, example: str) -> str:
    """Return the address unchanged.

    Raises:
        UsageError: it is this machine's own, which is another one in a pod.
    """
    if any(host in address for host in ("//127.", "//localhost", "//[::1]")):
        target = " With --target: `url` in its file." if variable == "BASE_URL" else ""
        raise UsageError(
            f"{address} is a pod's own address there. Set {variable} to one that reaches this "
            f"machine from the cluster and from here: export {variable}={example}.{target}"
        )
    return address


def pod_cpus() -> float:
    """Return the CPUs of each pod: LAB_K6_CPUS, or else one.

    Raises:
        UsageError: that is no number.
    """
    return _number("LAB_K6_CPUS", 1.0, "number of CPUs")


def start_seconds() -> float:
    """Return the time for pods to start: LAB_K6_START, or else a minute.

    Raises:
        UsageError: that is no number.
    """
    return _number("LAB_K6_START", _START_SECONDS, "number of seconds")


def _number(variable: str, default: float, what: str) -> float:
    text = os.environ.get(variable) or str(default)
    with suppress(ValueError):
        if 0 < float(text) <= 1024:
            return float(text)
    raise UsageError(f"{variable}={text} is no {what}. Set it like {variable}={default:g}.")


def archive_load(command: K6Command, variables: Mapping[str, str], file: Path) -> bytes:
    """Return k6's archive of the load: scripts, opened files, and these variables.

    Raises:
        LabError: k6 can't make it.
    """
    flags = [part for name, value in variables.items() for part in ("-e", f"{name}={value}")]
    process = capture_output(command, "archive", "--archive-out", str(file), *flags)
    if process.returncode:
        raise LabError(f"k6 could not archive the load: {error_message(process.stderr)}")
    return file.read_bytes()


def run_on_cluster(
    cluster: Cluster, load: ClusterLoad, seconds: float, write: Callable[[str, str, str], None]
) -> End:
    """Send the load, of at most `seconds`, from the cluster; delete it there whatever happens.

    `write` gets each generator's name, log and summary (empty without one).

    Raises:
        LabError: the cluster rejects it, or the generators do not start or end in time.
    """
    with _created(cluster, load):
        pods = _wait_for_end(cluster, load, seconds)
        for name in names_of(load):
            log = cluster.logs(f"{load.name}-{name}")
            write(name, log, _summary(log))
    codes = tuple(pods[name] for name in names_of(load))
    return End(codes, tuple(code not in (0, THRESHOLDS_FAILED) for code in codes))


def names_of(load: ClusterLoad) -> list[str]:
    """Return the values of `instance_id`, as k6-operator numbers its jobs."""
    return [str(number + 1) for number in range(load.generators)]


@contextmanager
def _created(cluster: Cluster, load: ClusterLoad) -> Iterator[None]:
    resources = manifests(load)
    # Rejected by the API server before anything exists there.
    cluster.create(resources, dry_run=True)
    try:
        cluster.create(resources)
        yield
    finally:
        with (
            uninterrupted("The load is deleted from the cluster first; a moment."),
            step("Deleting the load from the cluster"),
        ):
            cluster.delete(load.name)


def _wait_for_end(cluster: Cluster, load: ClusterLoad, seconds: float) -> dict[str, int]:
    """Return the exit codes of the generators by name."""
    began = answered = time.monotonic()
    due = began + start_seconds() + _LATE_SECONDS
    deadline = due + seconds + _END_SECONDS
    shown = ""
    while True:
        now = time.monotonic()
        try:
            stage, codes = cluster.stage(load.name), _exit_codes(cluster, load)
            pods = cluster.items("pods", f"k6_cr={load.name},runner=true")
            answered = now
        except ClusterSilentError:
            if now - answered > _PATIENCE_SECONDS:
                raise
            time.sleep(_POLL_SECONDS)
            continue
        text = f"  TestRun {stage}: {len(codes)} of {load.generators} generators have ended"
        if text != shown:
            shown = text
            note(text)
        # The operator calls a run with a killed pod "finished", too.
        if len(codes) == load.generators:
            return codes
        _require_no_stuck_pod(pods)
        if now > due and stage not in ("started", "stopped", "finished"):
            raise LabError(f"The generators did not start in time: {_why_waiting(pods)}")
        if stage == "error" or now > deadline:
            raise LabError(f"The generators did not end in time; the TestRun is in stage {stage}.")
        time.sleep(_POLL_SECONDS)


def _why_waiting(pods: list[dict[str, Any]]) -> str:
    """Return why pods are not scheduled, if that is so."""
    conditions = [each for pod in pods for each in pod.get("status", {}).get("conditions", [])]
    reasons = [each.get("message", "") for each in conditions if each.get("status") == "False"]
    advice = "Is the operator running? More time: LAB_K6_START=180 (seconds)."
    return " ".join([*sorted({reason for reason in reasons if reason}), advice])


def _exit_codes(cluster: Cluster, load: ClusterLoad) -> dict[str, int]:
    """Return the exit code of each generator that has ended; 1 for one whose pod is gone."""
    codes = {}
    for job in cluster.items("jobs", f"k6_cr={load.name},runner=true"):
        status = job.get("status", {})
        if status.get("succeeded") or status.get("failed"):
            name = job["metadata"]["name"]
            number = name.removeprefix(f"{load.name}-")
            codes[number] = 0 if status.get("succeeded") else _code_of_pod(cluster, name)
    return codes


def _code_of_pod(cluster: Cluster, job: str) -> int:
    ended = [
        status["state"]["terminated"]["exitCode"]
        for pod in cluster.items("pods", f"job-name={job}")
        for status in pod.get("status", {}).get("containerStatuses", [])
        if "terminated" in status.get("state", {})
    ]
    return int(ended[-1]) if ended else 1


def _require_no_stuck_pod(pods: list[dict[str, Any]]) -> None:
    for pod in pods:
        for container in pod.get("status", {}).get("containerStatuses", []):
            waiting: dict[str, Any] = container.get("state", {}).get("waiting", {})
            if waiting.get("reason") in _STUCK:
                raise LabError(
                    f"Pod {pod['metadata']['name']} can't start: {waiting['reason']}: "
                    f"{waiting.get('message', '')}"
                )


def _summary(log: str) -> str:
    lines = [line for line in log.splitlines() if line.startswith(_SUMMARY_LINE)]
    if not lines:
        return ""
    text = lines[-1].removeprefix(_SUMMARY_LINE)
    # A log that was cut in the middle has none.
    try:
        json.loads(text)
    except ValueError:
        return ""
    return text
