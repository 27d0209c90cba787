"""The settings table: one file, and everything that must agree with it."""

import json
import re
from typing import get_args

import pytest
from config import env

from lab.errors import UsageError
from lab.host.cpus import Cpus, choose_cpus
from lab.paths import ROOT
from lab.settings import Settings, changed, defaults, load_settings
from lab.settings.rules import TIMEOUTS_OUTSIDE_IN

EXAMPLE = (ROOT / ".env.example").read_text()
COMPOSE = "".join(path.read_text() for path in sorted(ROOT.glob("docker-compose*.yml")))


def _allowed(name):
    return set(get_args(Settings.model_fields[name].annotation))


def test_every_setting_has_a_default_and_every_default_is_a_setting():
    assert set(defaults()) == set(Settings.model_fields)


def test_every_setting_is_documented_where_its_default_is():
    commented = re.findall(r"^# .+\n(LAB_\w+)=", EXAMPLE, re.MULTILINE)
    assert set(commented) == set(defaults())


@pytest.mark.parametrize(
    "name",
    [
        *("LAB_SERVER", "LAB_DETAIL", "LAB_BOOKING", "LAB_ASGI_BESIDE", "LAB_WORKBENCH"),
        *("LAB_VIEWS", "LAB_WEBSOCKETS", "LAB_LATENCY_BY"),
        *("LAB_LOCAL_CACHE", "LAB_REDIS_CACHE", "LAB_NGINX_CACHE", "LAB_SHED"),
    ],
)
def test_backend_and_lab_know_the_same_values_and_the_table_names_them(name):
    kind = env.LabSettings.__annotations__[name.lower()]
    assert {str(member) for member in kind} == _allowed(name)
    (comment,) = re.findall(rf"# ([a-z| -]+)\.[^\n]*\n(?:#[^\n]*\n)*{name}=", EXAMPLE)
    assert set(comment.split(" | ")) == _allowed(name)


def test_the_backend_reads_the_same_defaults(monkeypatch):
    assert {k: defaults()[k] for k in env.lab_settings().as_env()} == env.lab_settings().as_env()


def test_each_timeout_is_shorter_than_the_one_outside_it():
    seconds = [int(defaults()[name]) for name in TIMEOUTS_OUTSIDE_IN]
    assert seconds == sorted(set(seconds), reverse=True)


def test_a_timeout_longer_than_the_one_outside_is_refused():
    with pytest.raises(UsageError, match="LAB_TIMEOUT=55 must be shorter than LAB_PROXY_TIMEOUT"):
        load_settings({"LAB_TIMEOUT": "55"})


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("LAB_SERVER", "apache", "Allowed: gunicorn-sync, gunicorn-gthread"),
        ("LAB_WORKERS", "0", "greater than or equal to 1"),
        ("LAB_WORKERS", "many", "valid integer"),
        ("LAB_DB_POOL", "0", "off, or a size from 1 to 1000"),
        ("LAB_TARGET_CPUS", "first", "a CPU list such as 0-2,5"),
        ("LAB_NGINX_CACHE_TTL", "0s", "a duration from 1s to 1h"),
        ("LAB_NGINX_CACHE_TTL", "2h", "a duration from 1s to 1h"),
        ("LAB_NGINX_CACHE_TTL", "5", "a duration from 1s to 1h"),
        ("LAB_BIND", "everywhere", "an IPv4 address"),
        ("LAB_LOAD_CPUS", "3-1", "a CPU list such as 0-2,5"),
        ("LAB_LATENCY_MS", "-1", "greater than or equal to 0"),
        ("LAB_LATENCY_MS", "20000", "less than or equal to 10000"),
        ("LAB_WEBSOCKETS", "on", "needs a server that speaks ASGI"),
        ("LAB_DB_POOL", "60", "2 processes with LAB_DB_POOL=60 take 120 connections"),
        ("LAB_WORKER", "2", "There is no setting LAB_WORKER"),
    ],
)
def test_an_unknown_name_or_value_is_refused_with_what_is_allowed(name, value, said):
    with pytest.raises(UsageError) as refused:
        load_settings({name: value})
    assert said in str(refused.value)
    assert name in str(refused.value)


def test_what_is_no_setting_of_ours_is_left_alone():
    load_settings({"LAB_POSTGRES_IMAGE": "mirror/postgres:18.1", "COMPOSE_PROJECT_NAME": "x"})


def test_the_side_that_is_not_named_gets_the_other_cpus(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3})
    assert choose_cpus(load_settings({})) == Cpus("0,1", "2,3")
    assert choose_cpus(load_settings({"LAB_TARGET_CPUS": "3"})) == Cpus("3", "0,1,2")
    assert choose_cpus(load_settings({"LAB_LOAD_CPUS": "0-1"})) == Cpus("2,3", "0-1")
    with pytest.raises(UsageError, match="not here: 7"):
        choose_cpus(load_settings({"LAB_LOAD_CPUS": "7"}))


def test_an_assignment_needs_its_equals_sign():
    with pytest.raises(UsageError, match="NAME=VALUE"):
        changed(load_settings(), ["LAB_DETAIL"])


def test_compose_has_no_default_of_its_own():
    found = re.findall(r"\$\{(LAB_\w+):-([^}]*)\}", COMPOSE)
    of_settings = {(name, value) for name, value in found if name in Settings.model_fields}
    assert of_settings
    assert {(name, defaults()[name]) for name, _ in of_settings} == of_settings


def test_compose_passes_every_setting_that_the_backend_reads():
    wanted = [*env.lab_settings().as_env(), *(n for n in defaults() if n.startswith("LAB_DATA"))]
    assert [name for name in wanted if f"    {name}:\n" not in COMPOSE] == []


def test_our_variables_never_take_k6s_names():
    assert not [name for name in Settings.model_fields if name.startswith("K6_")]
    assert json.dumps(defaults()).count("K6_") == 0
