"""Secrets do not appear on command lines, in logs, in results or in the output."""

import os
import shutil
import threading
from pathlib import Path

import psutil
import pytest
from config.secrets import NAMES

from load_lab.load.k6 import k6_env
from load_lab.load.load import Load
from load_lab.paths import State, project
from load_lab.stack.docker import DockerEngine
from load_lab.targets.reference.app import ReferenceApp

pytestmark = pytest.mark.full

TESTID = "keeps-secrets"


@pytest.fixture(scope="module")
def secrets(stack):
    values = {name: stack._state.secret(name) for name in NAMES}
    assert all(len(value) >= 48 for value in values.values())
    return values


class CommandLines(threading.Thread):
    """Collects every visible command line of this machine until `stop` is called."""

    def __init__(self):
        super().__init__(daemon=True)
        self.lines, self._stopped = set(), threading.Event()

    def run(self):
        while not self._stopped.wait(0.05):
            for process in psutil.process_iter(["cmdline"]):
                self.lines.add(" ".join(process.info["cmdline"] or []))

    def stop(self):
        self._stopped.set()
        self.join()
        return self.lines


@pytest.fixture(scope="module")
def run(lab, stack):
    """Start the stack and run k6; yield the recorded command lines and the outputs."""
    lines = CommandLines()
    lines.start()
    try:
        flags = ("--duration", "3s", "--vus", "1", "--testid", TESTID)
        results = [lab("up"), lab("k6", "smoke", *flags, "--json"), lab("status", "--json")]
        results += [lab("status"), lab("logs", "redis"), lab("logs", "postgres")]
        yield lines.stop(), results
    finally:
        shutil.rmtree(project().results / TESTID, ignore_errors=True)


def _find_secrets(texts, secrets):
    return [
        (name, place)
        for place, text in texts.items()
        for name, value in secrets.items()
        if value in text
    ]


def test_command_lines_contain_no_secret(run, secrets):
    lines, results = run
    assert [each.code for each in results] == [0] * len(results), [each.err for each in results]
    assert any("k6" in line and " run " in line for line in lines), (
        "the command line of k6 was not recorded"
    )
    assert _find_secrets({line: line for line in lines}, secrets) == []


def test_command_lines_of_first_start_contain_no_secret(lab, second_stack):
    """The first start creates the secrets, Postgres's data and the roles."""
    lines = CommandLines()
    lines.start()
    try:
        result = lab("up", **second_stack)
    finally:
        command_lines = lines.stop()
    assert result.code == 0, result.err
    assert lab("down", **second_stack).code == 0
    state = State(Path(second_stack["LAB_STATE_DIR"]))
    secrets = {name: state.secret(name) for name in NAMES}
    assert {"initdb", "config.secrets", "prepare_db"} <= {
        word for line in command_lines for word in _words(line)
    }
    texts = {line: line for line in command_lines} | {"output": result.out + result.err}
    assert _find_secrets(texts, secrets) == []


def _words(line):
    return (word.rsplit("/", 1)[-1] for word in line.split())


def test_lab_output_contains_no_secret(run, secrets):
    _, results = run
    texts = {number: each.out + each.err for number, each in enumerate(results)}
    assert _find_secrets(texts, secrets) == []


def test_logs_configuration_and_results_contain_no_secret(run, secrets, stack):
    state = stack._state
    folders = (state.logs, state.run, project().results / TESTID)
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    files.append(state.settings)
    names = {path.name for path in files}
    assert names >= {"postgres.log", "supervisord.conf", "nginx.conf", "k6-summary.json"}
    texts = {str(path): path.read_bytes().decode(errors="replace") for path in files}
    assert _find_secrets(texts, secrets) == []


def test_process_environments_contain_no_secret(run, secrets, stack):
    """Programs read secrets from files, as child processes inherit the environment."""
    environments = {}
    for name, pid in stack.pids().items():
        environments[name] = "\n".join(psutil.Process(pid).environ().values())
    assert len(environments) > 10
    assert _find_secrets(environments, secrets) == []


@pytest.fixture
def k6_command(stack, monkeypatch):
    """Return a function that builds the docker engine's k6 command of a load."""
    settings = stack.settings()
    monkeypatch.setattr(DockerEngine, "token", lambda _: "the-token")
    monkeypatch.setattr(DockerEngine, "push_url", lambda *_: "http://127.0.0.1:1")
    monkeypatch.setattr(DockerEngine, "settings", lambda _: settings)
    engine = DockerEngine()

    def build(**environ):
        env = k6_env(engine, ReferenceApp(engine), Load("smoke"), project().results / "x")
        return engine.k6(settings, env | environ)

    return build


def test_docker_engine_passes_the_token_in_the_environment(k6_command):
    command = k6_command()
    assert command.env["LAB_TOKEN"] == "the-token"
    assert not [word for word in command.argv if "the-token" in word]
    names = [command.argv[n + 1] for n, word in enumerate(command.argv) if word == "-e"]
    assert "LAB_TOKEN" in names
    assert set(names) <= set(command.env) | set(os.environ)


def test_docker_engine_gives_k6_the_file_of_a_mix(k6_command):
    command = k6_command(MIX="/some/where/mix.json")
    assert command.env["MIX"] == "/mix.json"
    volume = command.argv[command.argv.index("--volume") + 1]
    assert volume == "/some/where/mix.json:/mix.json:ro"
