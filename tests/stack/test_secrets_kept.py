"""No secret stands where others read: on a command line, in a log, a result, in what is said."""

import os
import shutil
import threading
from pathlib import Path

import psutil
import pytest
from config.secrets import NAMES

from lab.load.k6 import Load, k6_env
from lab.paths import RESULTS, State
from lab.stack.docker import DockerEngine

TESTID = "keeps-secrets"


@pytest.fixture(scope="module")
def secrets(stack):
    found = {name: stack._state.secret(name) for name in NAMES}
    assert all(len(value) >= 48 for value in found.values())
    return found


class CommandLines(threading.Thread):
    """Every command line of this machine that can be seen until `stop` is called."""

    def __init__(self):
        super().__init__(daemon=True)
        self.seen, self._stopped = set(), threading.Event()

    def run(self):
        while not self._stopped.wait(0.05):
            for process in psutil.process_iter(["cmdline"]):
                self.seen.add(" ".join(process.info["cmdline"] or []))

    def stop(self):
        self._stopped.set()
        self.join()
        return self.seen


@pytest.fixture(scope="module")
def run(lab, stack):
    """What a start and a run of k6 show meanwhile: command lines, and what was said."""
    lines = CommandLines()
    lines.start()
    try:
        flags = ("--duration", "3s", "--vus", "1", "--testid", TESTID)
        said = [lab("up"), lab("k6", "smoke", *flags, "--json"), lab("status", "--json")]
        said += [lab("status"), lab("logs", "redis"), lab("logs", "postgres")]
        yield lines.stop(), said
    finally:
        shutil.rmtree(RESULTS / TESTID, ignore_errors=True)


def _containing(texts, secrets):
    return [
        (name, where)
        for where, text in texts.items()
        for name, value in secrets.items()
        if value in text
    ]


def test_no_command_line_has_one(run, secrets):
    lines, said = run
    assert [each.code for each in said] == [0] * len(said), [each.err for each in said]
    assert any("k6" in line and " run " in line for line in lines), "the run was not seen"
    assert _containing({line: line for line in lines}, secrets) == []


def test_no_command_line_of_a_first_start_has_one(lab, other):
    """It makes the secrets themselves, Postgres's data, and the roles."""
    lines = CommandLines()
    lines.start()
    try:
        said = lab("up", **other)
    finally:
        seen = lines.stop()
    assert said.code == 0, said.err
    assert lab("down", **other).code == 0
    state = State(Path(other["LAB_STATE_DIR"]))
    secrets = {name: state.secret(name) for name in NAMES}
    assert {"initdb", "ops.roles", "load_db"} <= {word for line in seen for word in _words(line)}
    texts = {line: line for line in seen} | {"said": said.out + said.err}
    assert _containing(texts, secrets) == []


def _words(line):
    return (word.rsplit("/", 1)[-1] for word in line.split())


def test_nothing_that_the_lab_says_has_one(run, secrets):
    _, said = run
    texts = {number: each.out + each.err for number, each in enumerate(said)}
    assert _containing(texts, secrets) == []


def test_no_log_no_configuration_and_no_result_has_one(run, secrets, stack):
    state = stack._state
    folders = (state.logs, state.run, RESULTS / TESTID)
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    files.append(state.settings)
    names = {path.name for path in files}
    assert names >= {"postgres.log", "supervisord.conf", "nginx.conf", "k6-summary.json"}
    texts = {str(path): path.read_bytes().decode(errors="replace") for path in files}
    assert _containing(texts, secrets) == []


def test_no_process_that_needs_none_has_one_in_its_environment(run, secrets, stack):
    """Programs read them from files; what a program was started with, its children have too."""
    environments = {}
    for name, pid in stack.pids().items():
        environments[name] = "\n".join(psutil.Process(pid).environ().values())
    assert len(environments) > 10
    assert _containing(environments, secrets) == []


def test_on_the_docker_engine_the_token_is_on_no_command_line_either(stack, monkeypatch):
    monkeypatch.setattr(DockerEngine, "token", lambda _: "the-token")
    monkeypatch.setattr(DockerEngine, "push_url", lambda *_: "http://127.0.0.1:1")
    engine, settings = DockerEngine(), stack.settings()
    command = engine.k6(settings, k6_env(engine, settings, Load("smoke"), RESULTS / "x"))
    assert command.env["LAB_TOKEN"] == "the-token"
    assert not [word for word in command.argv if "the-token" in word]
    named = [command.argv[n + 1] for n, word in enumerate(command.argv) if word == "-e"]
    assert "LAB_TOKEN" in named
    assert set(named) <= set(command.env) | set(os.environ)
