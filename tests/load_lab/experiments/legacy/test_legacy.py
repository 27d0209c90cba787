"""The pinned old stacks: their files and their validation."""

import re

import pytest

from load_lab.errors import UsageError
from load_lab.experiments import files
from load_lab.experiments.legacy import environment, runner, stacks
from load_lab.machine.cpus import Cpus
from load_lab.settings import load_settings

ALL = [stacks.stack(name) for name in stacks.names()]
PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[\w+\])?==(\S+)", re.MULTILINE)


def _pins(path):
    pins = PIN.findall(path.read_text())
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in pins}


def test_stacks_of_published_experiments_exist():
    assert [s.name for s in ALL] == [
        *("channels-2016", "django-3.0-asgiref-3.2", "django-3.0-asgiref-3.4"),
    ]


@pytest.mark.parametrize("stack", ALL, ids=lambda one: one.name)
def test_pinned_versions_match_expected_and_have_hashes(stack):
    pins = _pins(stack.requirements)
    required = _pins(stack.folder / "requirements.in")
    assert required.items() <= pins.items()
    versions = {k: v for k, v in stack.expected.items() if isinstance(v, str)}
    assert versions.items() <= pins.items()
    text = stack.requirements.read_text() + environment.BOOTSTRAP.read_text()
    assert text.count("==") == len(re.findall(r"==\S+ \\\n    --hash=sha256:[0-9a-f]{64}", text))
    assert "://" not in text
    # Both files pin the same version of the installer.
    assert pins["setuptools"] == _pins(environment.BOOTSTRAP)["setuptools"]


@pytest.mark.parametrize("stack", ALL, ids=lambda one: one.name)
def test_image_and_project_match_stack(stack):
    image = (stack.folder / "Dockerfile").read_text()
    assert f"BASE_IMAGE=python:{stack.python}." in image
    assert f"COPY projects/{stack.project} " in image
    assert f" {stack.name}/requirements.txt " in image
    urls = (stack.project_folder / "config/urls.py").read_text()
    routes = re.findall(r"workbench/([a-z-]+)/", urls)
    assert sorted(name.replace("-", "_") for name in routes) == sorted(stack.routes)


def test_unknown_stack_or_arm_is_rejected_with_known_names():
    with pytest.raises(UsageError, match=r"no old stack django-1.0. Known: channels-2016, django"):
        stacks.find("django-1.0", "gunicorn-5")
    with pytest.raises(UsageError, match=r"no arm daphne-9. Known: gunicorn-5, uvicorn-1"):
        stacks.find("django-3.0-asgiref-3.4", "daphne-9")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title = ", "is not TOML"),
        ("titel = 'x'", "titel: Extra inputs are not permitted"),
        ("title = 'x'", "python: Field required"),
    ],
)
def test_stack_file_with_invalid_schema_is_one_message(monkeypatch, tmp_path, text, message):
    (tmp_path / "s").mkdir()
    (tmp_path / "s/stack.toml").write_text(text)
    monkeypatch.setattr(stacks, "FOLDER", tmp_path)
    with pytest.raises(UsageError, match=message):
        stacks.stack("s")


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("scenario = 'workbench', route = 'hello'", "can't answer .*route hello.*pg_sleep"),
        ("scenario = 'journey'", "can't answer the scenario journey"),
        ("scenario = 'workbench', route = 'sleep' }\nwarm = 'pages'\nx = {", "has no pages"),
        (
            "scenario = 'workbench', route = 'sleep' }\nsettings = { LAB_LATENCY_MS = 100 }\nx = {",
            "can't be delayed: toxiproxy stands before the backend alone",
        ),
    ],
)
def test_cell_with_unsupported_old_stack_feature_is_rejected(cell, message):
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
    with pytest.raises(UsageError, match=message):
        files.checked_cells("t", files.parse("t", text), load_settings())


@pytest.mark.parametrize(
    ("target", "load", "usable", "server", "layer", "shared"),
    [
        ("0", "1", "01", "0", "1", "the load generator"),
        ("0,1", "2,3", "0123", "0,1", "3", "the load generator"),
        ("0-2", "3-5", "012345", "0,1", "2", "nobody"),
        ("0,1", "2", "0123", "0,1", "3", "nobody"),
    ],
)
def test_layer_gets_separate_cpu(monkeypatch, target, load, usable, server, layer, shared):
    monkeypatch.setattr(runner, "usable_cpus", lambda: [int(number) for number in usable])
    monkeypatch.setattr(runner, "choose_cpus", lambda _: Cpus(target, load))
    channels = stacks.stack("channels-2016")
    separate = runner.arm_cpus(channels.arms["daphne-redis-own-cpu"], load_settings())
    assert separate == runner.ArmCpus(server, layer, shared)
    default = runner.arm_cpus(channels.arms["daphne-redis"], load_settings())
    assert (default.server, default.layer) == (target, target)
