"""How a load is sent: by one k6 here, by several that share it, or from a cluster."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import time
from typing import IO

from lab.errors import UsageError
from lab.load.generators import PREPARED, part_of_summary, prepare, samples_file, start_gate
from lab.load.kubernetes.cluster import Cluster
from lab.load.kubernetes.manifests import ClusterLoad, Manifest, manifests
from lab.load.kubernetes.run import (
    archive_load,
    pod_cpus,
    run_on_cluster,
    start_seconds,
    variables_of,
)
from lab.load.load import Load
from lab.load.process import End, Process, execute, truncate_log
from lab.settings import Settings
from lab.stack.engine import Engine, K6Command

# As in k6/push.env.
_PUSH_OUTPUT = "experimental-prometheus-rw"
# Of a load that ends with its work.
_LONGEST_SECONDS = 3600.0

# Sends a load to its end, or until the function that it gets returns true; returns the logs, too.
Sender = Callable[[Callable[[], bool]], tuple[End, list[Path]]]


@contextmanager
def sender(
    engine: Engine,
    settings: Settings,
    env: dict[str, str],
    load: Load,
    folder: Path,
    *,
    quiet: bool,
) -> Iterator[Sender]:
    """Prepare a load whose files go to `folder`, the messages of a single k6 only if `quiet`; yield
    its sender.
    """
    if load.cluster:
        cluster_load = _cluster_load(engine, settings, env, load, folder)
        yield partial(_send_from_cluster, load.cluster, cluster_load, folder)
    elif not load.is_shared:
        commands = {"": engine.k6(settings, env | _samples_env(load, folder, ""))}
        yield partial(_send, commands, load, folder if quiet else None)
    else:
        # The summaries of several k6 would only hide the verdict.
        with _commands(engine, settings, env, load, folder) as commands:
            yield partial(_send, commands, load, folder)


@contextmanager
def _commands(
    engine: Engine, settings: Settings, env: dict[str, str], load: Load, folder: Path
) -> Iterator[dict[str, K6Command]]:
    """Yield the commands of generators that share a prepared load, by name."""
    prepared = folder / PREPARED
    command = engine.k6(settings, {**env, "PREPARED_PATH": str(prepared)})
    prepare(command, prepared, load.k6_options)
    with start_gate(load.generators) as url:
        yield {
            name: engine.k6(
                settings,
                {
                    **env,
                    "SEGMENT": f"{name}/{load.generators}",
                    "PREPARED": str(prepared),
                    "START_URL": url,
                    "SUMMARY_PATH": str(part_of_summary(folder, name)),
                    **_samples_env(load, folder, name),
                },
            )
            for name in load.names
        }


def _samples_env(load: Load, folder: Path, name: str) -> dict[str, str]:
    if not load.samples:
        return {}
    return {"K6_OUT": f"{_PUSH_OUTPUT},csv={samples_file(folder, name)}"}


def _send(
    commands: Mapping[str, K6Command],
    load: Load,
    folder: Path | None,
    should_stop: Callable[[], bool],
) -> tuple[End, list[Path]]:
    """Run k6 with its messages on the terminal, or in logs in the folder, of which only the end is
    stored.
    """
    logs = [] if folder is None else [folder / f"k6{name and '-'}{name}.log" for name in commands]
    with ExitStack() as stack:
        outputs: list[IO[str]] = [stack.enter_context(log.open("w")) for log in logs]
        outputs = outputs or [sys.stderr] * len(commands)
        processes = [
            Process(command, output, load.k6_options)
            for command, output in zip(commands.values(), outputs, strict=True)
        ]
        end = execute(processes, should_stop)
    for log in logs:
        truncate_log(log)
    return end, logs


def _cluster_load(
    engine: Engine, settings: Settings, env: dict[str, str], load: Load, folder: Path
) -> ClusterLoad:
    """Prepare a load that pods send, and archive it with its start."""
    prepared = folder / PREPARED
    command = engine.k6(settings, {**env, "PREPARED_PATH": str(prepared)})
    prepare(command, prepared, load.k6_options)
    start = {"PREPARED": str(prepared), "START_AT": f"{time() + start_seconds():.3f}"}
    return _archived(engine, settings, {**env, **start}, load, folder)


def rendered(
    engine: Engine, settings: Settings, env: dict[str, str], load: Load, folder: Path
) -> list[Manifest]:
    """Return the manifests of a load that is not prepared: setup() runs in each pod. Whoever
    applies them creates the Secret.
    """
    archived = _archived(engine, settings, env, load, folder)
    return manifests(replace(archived, secrets=None))


def _archived(
    engine: Engine, settings: Settings, env: dict[str, str], load: Load, folder: Path
) -> ClusterLoad:
    variables = variables_of(env)
    archive = archive_load(engine.k6(settings, {}), variables.archive, folder / "archive.tar")
    return ClusterLoad(
        load.testid,
        load.generators,
        archive,
        variables.pods,
        variables.secrets,
        load.k6_options,
        f"{pod_cpus():g}",
    )


def require_local_k6(engine: Engine, *, samples: bool) -> None:
    """Check that a load for a cluster can be prepared and archived here.

    Raises:
        UsageError: k6 runs in a container here, or the samples would stay in the pods.
    """
    if engine.name == "docker":
        raise UsageError(
            "LAB_ENGINE=docker has k6 in a container, which can't archive a load. Use the native "
            "engine: lab down, then LAB_ENGINE=native lab up"
        )
    if samples:
        raise UsageError("--samples writes files in the pods. Leave it out with --on kubernetes.")


def _send_from_cluster(
    cluster: Cluster, load: ClusterLoad, folder: Path, _should_stop: Callable[[], bool]
) -> tuple[End, list[Path]]:
    """Run the load on the cluster, to its end: pods can't be interrupted from here."""
    logs = []

    def write(name: str, log: str, summary: str) -> None:
        logs.append(folder / f"k6-{name}.log")
        logs[-1].write_text(log)
        if summary:
            part_of_summary(folder, name).write_text(summary)

    planned = json.loads(json.loads((folder / PREPARED).read_text())["load"])["durationSeconds"]
    end = run_on_cluster(cluster, load, planned or _LONGEST_SECONDS, write)
    return end, logs
