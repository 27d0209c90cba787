"""The settings table, and everything that must agree with it."""

import json
import re

import pytest
from config import env
from lab_settings.declaration import Declaration, defaults, is_fixed, names_used_by
from lab_settings.example import example, with_variables
from lab_settings.rules import TIMEOUTS
from lab_settings.settings_file import write_settings

from load_lab.errors import UsageError
from load_lab.machine.cpus import Cpus, choose_cpus
from load_lab.paths import ROOT, State
from load_lab.settings import (
    Settings,
    load_settings,
    running_settings,
    stored_settings,
    update_settings,
)

COMPOSE = "".join(path.read_text() for path in sorted(ROOT.glob("docker-compose*.yml")))


def test_example_matches_declaration():
    assert (ROOT / ".env.example").read_text() == example(), "make env-example"


def test_every_setting_has_description():
    assert [n for n, field in Declaration.model_fields.items() if not field.description] == []


def test_backend_and_lab_parse_settings_alike(monkeypatch):
    monkeypatch.setenv("LAB_SERVER", "uvicorn")
    monkeypatch.setenv("LAB_DB_POOL", "7")
    lab_settings, backend_settings = load_settings(), env.lab_settings()
    assert {
        name: lab_settings.as_env()[name] for name in backend_settings.of_backend()
    } == backend_settings.of_backend()
    monkeypatch.setenv("LAB_SERVER", "apache")
    messages = []
    for read in (load_settings, env.lab_settings):
        with pytest.raises(Exception, match="LAB_SERVER=apache is invalid") as error:
            read()
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_each_timeout_is_shorter_than_outer_timeout():
    seconds = [int(defaults()[name]) for name in TIMEOUTS]
    assert seconds == sorted(set(seconds), reverse=True)


def test_timeout_longer_than_outer_timeout_is_rejected():
    with pytest.raises(UsageError, match="LAB_TIMEOUT=55 must be shorter than LAB_PROXY_TIMEOUT"):
        load_settings({"LAB_TIMEOUT": "55"})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("LAB_SERVER", "apache", "Allowed: gunicorn-sync, gunicorn-gthread"),
        ("LAB_WORKERS", "0", "Allowed: 1 or more"),
        ("LAB_WORKERS", "many", "valid integer"),
        ("LAB_DB_POOL", "0", "off, or a size from 1 to 1000"),
        ("LAB_TARGET_CPUS", "first", "a CPU list such as 0-2,5"),
        ("LAB_NGINX_CACHE_TTL", "0s", "a duration from 1s to 1h"),
        ("LAB_NGINX_CACHE_TTL", "2h", "a duration from 1s to 1h"),
        ("LAB_NGINX_CACHE_TTL", "5", "a duration from 1s to 1h"),
        ("LAB_BIND", "everywhere", "an IPv4 address"),
        ("LAB_LOAD_CPUS", "3-1", "a CPU list such as 0-2,5"),
        ("LAB_LATENCY_MS", "-1", "Allowed: 0 or more"),
        ("LAB_LATENCY_MS", "20000", "Allowed: 10000 or less"),
        ("LAB_WEBSOCKETS", "on", "needs an ASGI server"),
        ("LAB_DB_POOL", "60", "2 processes with LAB_DB_POOL=60 need 120 connections"),
        ("LAB_SERVER", "daphne", "LAB_SERVER=daphne runs one process, but LAB_WORKERS=2"),
        ("LAB_WORKER", "2", "There is no setting LAB_WORKER. Did you mean LAB_WORKERS"),
    ],
)
def test_unknown_name_or_value_is_rejected_with_allowed_values(name, value, message):
    with pytest.raises(UsageError) as error:
        load_settings({name: value})
    assert message in str(error.value)
    assert name in str(error.value)


def test_other_environment_variables_are_ignored():
    load_settings({"LAB_POSTGRES_IMAGE": "mirror/postgres:18.1", "COMPOSE_PROJECT_NAME": "x"})


def test_unconfigured_side_gets_remaining_cpus(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3})
    assert choose_cpus(load_settings({})) == Cpus("0,1", "2,3")
    assert choose_cpus(load_settings({"LAB_TARGET_CPUS": "3"})) == Cpus("3", "0,1,2")
    assert choose_cpus(load_settings({"LAB_LOAD_CPUS": "0-1"})) == Cpus("2,3", "0-1")
    with pytest.raises(UsageError, match="not here: 7"):
        choose_cpus(load_settings({"LAB_LOAD_CPUS": "7"}))


def test_assignment_needs_equals_sign():
    with pytest.raises(UsageError, match="NAME=VALUE"):
        update_settings(load_settings(), ["LAB_DETAIL"])


def test_compose_defaults_match_declaration():
    matches = re.findall(r"\$\{(LAB_\w+):-([^}]*)\}", COMPOSE)
    compose_defaults = {(name, value) for name, value in matches if name in Settings.model_fields}
    assert compose_defaults
    assert {(name, defaults()[name]) for name, _ in compose_defaults} == compose_defaults


def test_compose_passes_every_backend_setting():
    compose = (ROOT / "docker-compose.yml").read_text()
    assert with_variables(compose) == compose, "make env-example"
    names = [n for n in defaults() if n.startswith("LAB_DATA")] + names_used_by("backend")
    assert [name for name in names if f"    {name}:\n" not in compose] == []


def test_fixed_settings_are_engine_address_ports_cpus_and_data():
    groups = re.compile(r"LAB_(ENGINE|REFERENCE_APP|BIND|\w+_PORT|\w+_CPUS|DATA_\w+)")
    assert [n for n in defaults() if is_fixed(n)] == [n for n in defaults() if groups.fullmatch(n)]


def test_settings_of_another_version_are_one_error(tmp_path):
    """A stack that an older lab started, and settings in results."""
    stored = {**defaults(), "LAB_LATENCY_BY": "netem"}
    del stored["LAB_SHED"]
    with pytest.raises(UsageError, match=r"x is of another version .* LAB_LATENCY_BY, LAB_SHED\."):
        stored_settings(stored, "x")
    state = State(tmp_path)
    assert running_settings(state) is None
    write_settings(state.settings, stored)
    with pytest.raises(UsageError, match=f"{state.settings} is of another version"):
        running_settings(state)


def test_settings_do_not_use_k6_names():
    assert not [name for name in Settings.model_fields if name.startswith("K6_")]
    assert json.dumps(defaults()).count("K6_") == 0
