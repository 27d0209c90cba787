"""A load from a cluster: prepared and archived here, and sent from there."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import time

from load_lab.errors import UsageError
from load_lab.load.generators import PREPARED, part_of_summary, prepare
from load_lab.load.kubernetes.cluster import Cluster
from load_lab.load.kubernetes.cluster_load import (
    archive_load,
    pod_cpus,
    run_on_cluster,
    start_seconds,
    variables_of,
)
from load_lab.load.kubernetes.manifests import ClusterLoad, Manifest, manifests
from load_lab.load.load import Load
from load_lab.load.process import End
from load_lab.settings import Settings
from load_lab.stack.engine import Engine

# Of a load that ends with its work.
_LONGEST_SECONDS = 3600.0


def prepare_on_cluster(
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
    if not engine.has_processes:
        raise UsageError(
            "This engine has k6 in a container, which can't archive a load. Use the native "
            "engine: lab down, then LAB_ENGINE=native lab up"
        )
    if samples:
        raise UsageError("--samples writes files in the pods. Leave it out with --on kubernetes.")


def send_from_cluster(
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
