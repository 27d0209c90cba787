"""The pinned old stacks: what their files say, and what a machine without their Python is told."""

import os
import re
import signal
import subprocess
import sys

import psutil
import pytest

from lab.cpus import Cpus
from lab.engine.native.supervision import wait_for
from lab.errors import LabError, UsageError
from lab.experiment import load
from lab.legacy import cpus, environment, stacks
from lab.legacy.processes import Process, processes
from lab.legacy.pythons import NotHere, check_compiler, find_python
from lab.paths import ROOT, State
from lab.settings import load_settings

ALL = [stacks.stack(name) for name in stacks.names()]
PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[\w+\])?==(\S+)", re.MULTILINE)


def _pins(path):
    found = PIN.findall(path.read_text())
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found}


def test_the_stacks_of_the_published_experiments_are_there():
    assert [s.name for s in ALL] == [
        *("channels-2016", "django-3.0-asgiref-3.2", "django-3.0-asgiref-3.4"),
    ]


@pytest.mark.parametrize("stack", ALL, ids=lambda one: one.name)
def test_what_is_pinned_is_what_is_expected_and_has_hashes(stack):
    pinned = _pins(stack.requirements)
    wanted = _pins(stack.folder / "requirements.in")
    assert wanted.items() <= pinned.items()
    versions = {k: v for k, v in stack.expected.items() if isinstance(v, str)}
    assert versions.items() <= pinned.items()
    text = stack.requirements.read_text() + environment.BOOTSTRAP.read_text()
    assert text.count("==") == len(re.findall(r"==\S+ \\\n    --hash=sha256:[0-9a-f]{64}", text))
    assert "://" not in text
    # As the environment is made: what installs is pinned once.
    assert pinned["setuptools"] == _pins(environment.BOOTSTRAP)["setuptools"]


@pytest.mark.parametrize("stack", ALL, ids=lambda one: one.name)
def test_image_and_project_are_the_stacks(stack):
    image = (stack.folder / "Dockerfile").read_text()
    assert f"BASE_IMAGE=python:{stack.python}." in image
    assert f"COPY projects/{stack.project} " in image
    assert f" {stack.name}/requirements.txt " in image
    urls = (stack.project_folder / "config/urls.py").read_text()
    routed = re.findall(r"workbench/([a-z-]+)/", urls)
    assert sorted(name.replace("-", "_") for name in routed) == sorted(stack.routes)


def test_an_unknown_stack_or_arm_is_named_with_the_known_ones():
    with pytest.raises(UsageError, match=r"no old stack django-1.0. Known: channels-2016, django"):
        stacks.find("django-1.0", "gunicorn-5")
    with pytest.raises(UsageError, match=r"no arm daphne-9. Known: gunicorn-5, uvicorn-1"):
        stacks.find("django-3.0-asgiref-3.4", "daphne-9")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("title = ", "is not TOML"),
        ("titel = 'x'", "titel: Extra inputs are not permitted"),
        ("title = 'x'", "python: Field required"),
    ],
)
def test_a_stack_that_does_not_follow_the_schema_is_one_message(monkeypatch, tmp_path, text, said):
    (tmp_path / "s").mkdir()
    (tmp_path / "s/stack.toml").write_text(text)
    monkeypatch.setattr(stacks, "FOLDER", tmp_path)
    with pytest.raises(UsageError, match=said):
        stacks.stack("s")


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("scenario = 'workbench', route = 'hello'", "can't answer .*route hello.*pg_sleep"),
        ("scenario = 'journey'", "can't answer the scenario journey"),
        ("scenario = 'workbench', route = 'sleep' }\nwarm = 'pages'\nx = {", "has no pages"),
        (
            "scenario = 'workbench', route = 'sleep' }\nsettings = { LAB_LATENCY_MS = 100 }\nx = {",
            "can't be delayed by toxiproxy: LAB_LATENCY_MS=100 would be measured as 0",
        ),
    ],
)
def test_a_cell_asks_an_old_stack_only_for_what_it_has(cell, said):
    workload = f"workload = {{ profile = 'closed', duration = '10s', {cell} }}"
    text = f"""schema_version = 1
title = "t"
question = "q"
source = "s"
[[axis]]
name = "arm"
[axis.positions.a]
title = "a"
legacy = {{ stack = "django-3.0-asgiref-3.2", arm = "daphne-1" }}
{workload}
""".replace("x = { }", "")
    with pytest.raises(UsageError, match=said):
        load.checked_cells("t", load.parse("t", text), load_settings())


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """A PATH and a pyenv with nothing in them, and where to put something."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    return tmp_path


def _program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_python_that_is_not_here_is_told_with_where_it_was_looked_for(nowhere):
    with pytest.raises(NotHere) as found:
        find_python("3.6")
    assert str(found.value) == (
        "Python 3.6 is not here: no python3.6 on the PATH and none in "
        f"{nowhere}/pyenv/versions. Get it, for example with: pyenv install 3.6"
    )


def test_pyenvs_shim_without_a_version_is_no_python(nowhere):
    shim = _program(nowhere / "python3.6", "echo 'pyenv: python3.6: command not found' >&2; exit 1")
    with pytest.raises(NotHere, match=f"{shim} does not run"):
        find_python("3.6")
    kept = nowhere / "pyenv/versions"
    for version in ("3.6.9", "3.6.15", "3.60.1"):
        _program(kept / version / "bin/python3.6", "echo 3.6")
    assert find_python("3.6") == kept / "3.6.15/bin/python3.6"


def test_a_compiler_that_is_not_here_is_told(nowhere):
    with pytest.raises(NotHere, match="C compiler is not here"):
        check_compiler()


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A stack of this Python's own version that pins nothing."""
    monkeypatch.setattr(stacks, "FOLDER", tmp_path)
    monkeypatch.setattr(environment, "BOOTSTRAP", tmp_path / "bootstrap.txt")
    monkeypatch.setattr(environment, "ENVIRONMENTS", tmp_path / "environments")
    (tmp_path / "bootstrap.txt").touch()
    (tmp_path / "small").mkdir()
    (tmp_path / "small/requirements.txt").touch()
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return ALL[1].model_copy(update={"name": "small", "python": version})


# A Python whose environments cost no 30 s: the real one is made in test_legacy_arms.py.
QUICK_PYTHON = """
case "$2" in
    venv) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
    pip) echo "$*" >>"$(dirname "$0")/installed" ;;
esac
"""


def test_an_environment_is_made_once_and_a_half_made_one_again(
    small, monkeypatch, capsys, tmp_path
):
    python = _program(tmp_path / "python", QUICK_PYTHON)
    monkeypatch.setattr(environment, "find_python", lambda _: python)
    left = environment.folder_of(small) / "left-by-an-earlier-try"
    left.parent.mkdir(parents=True)
    left.touch()
    programs = environment.make(small)
    installed = (programs / "installed").read_text().splitlines()
    assert [line.split()[-1] for line in installed] == [
        *(str(environment.BOOTSTRAP), str(small.requirements)),
    ]
    assert all("--require-hashes" in line for line in installed)
    assert not left.exists()
    assert "Making the environment of Django 3.0.14, asgiref 3.2.10" in capsys.readouterr().err
    assert environment.make(small) == programs
    assert capsys.readouterr().err == ""


def test_another_pin_is_another_environment(small):
    before = environment.folder_of(small)
    small.requirements.write_text("six==1.16.0\n")
    assert environment.folder_of(small) != before


def test_an_environment_that_can_not_be_made_is_told_with_the_reason(small, monkeypatch, tmp_path):
    broken = _program(tmp_path / "python", "echo 'No module named ensurepip' >&2; exit 1")
    monkeypatch.setattr(environment, "find_python", lambda _: broken)
    with pytest.raises(NotHere, match=r"needs the package index[\s\S]*ensurepip"):
        environment.make(small)
    assert not environment.is_made(small)


@pytest.mark.parametrize(
    ("target", "load_", "here", "server", "layer", "shared"),
    [
        ("0", "1", "01", "0", "1", "the load generator"),
        ("0,1", "2,3", "0123", "0,1", "3", "the load generator"),
        ("0-2", "3-5", "012345", "0,1", "2", "nobody"),
        ("0,1", "2", "0123", "0,1", "3", "nobody"),
    ],
)
def test_a_layer_with_a_cpu_of_its_own(monkeypatch, target, load_, here, server, layer, shared):
    monkeypatch.setattr(cpus, "usable_cpus", lambda: [int(number) for number in here])
    monkeypatch.setattr(cpus, "choose_cpus", lambda _: Cpus(target, load_))
    channels = stacks.stack("channels-2016")
    own = cpus.arm_cpus(channels.arms["daphne-redis-own-cpu"], load_settings())
    assert own == cpus.ArmCpus(server, layer, shared)
    usual = cpus.arm_cpus(channels.arms["daphne-redis"], load_settings())
    assert (usual.server, usual.layer) == (target, target)


@pytest.fixture
def state(tmp_path):
    (tmp_path / "logs").mkdir()
    return State(tmp_path)


def _shell(text):
    cpu = str(min(os.sched_getaffinity(0)))
    return Process("legacy-web", ["sh", "-c", text], cpu, ROOT, {"PATH": os.environ["PATH"]})


def test_a_process_that_ends_is_told_with_the_end_of_its_log(state):
    with processes(state) as started:
        started.start(_shell("echo no such module; exit 3"))
        started.started["legacy-web"].wait()
        with pytest.raises(
            LabError, match=r"legacy-web ended with exit code 3[\s\S]*no such module"
        ):
            started.check()


def test_nothing_is_left_of_processes_not_even_the_deaf_child_of_a_dead_parent(state):
    with processes(state) as started:
        started.start(_shell("(trap '' TERM; echo $$; exec sleep 600) & echo up; exit 0"))
        started.started["legacy-web"].wait()
        group = started.pids["legacy-web"]
        assert _members(group)
    wait_for(lambda: not _members(group), seconds=5, what="the child's end")


def _members(group):
    return [p for p in psutil.pids() if _group_of(p) == group and _lives(p)]


def _group_of(pid):
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def _lives(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_what_a_killed_run_left_is_ended_before_the_next_arm(state):
    argv = [sys.executable, "-c", "import time; time.sleep(600)"]
    env = {**os.environ, "LAB_STACK": str(state.base), "LAB_LEGACY": "legacy-web"}
    left = subprocess.Popen(argv, env=env)
    other = subprocess.Popen(argv, env=env | {"LAB_STACK": "/another"})
    try:
        wait_for(lambda: _named(left) and _named(other), seconds=5, what="their start")
        with processes(state):
            assert left.wait(5) == -signal.SIGKILL
            assert other.poll() is None
    finally:
        for process in (left, other):
            process.kill()
            process.wait()


def _named(process):
    return "LAB_LEGACY" in psutil.Process(process.pid).environ()
