"""How a load is sent: by one k6 here, by several that share it, or from a cluster."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO

from load_lab.load.generators import PREPARED, part_of_summary, prepare, samples_file, start_gate
from load_lab.load.kubernetes.sender import prepare_on_cluster, send_from_cluster
from load_lab.load.load import Load
from load_lab.load.process import End, Process, execute, truncate_log
from load_lab.settings import Settings
from load_lab.stack.engine import Engine, K6Command

# As in k6/push.env.
_PUSH_OUTPUT = "experimental-prometheus-rw"

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
        cluster_load = prepare_on_cluster(engine, settings, env, load, folder)
        yield partial(send_from_cluster, load.cluster, cluster_load, folder)
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
