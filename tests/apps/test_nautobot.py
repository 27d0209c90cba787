"""Nautobot, a large app that the lab does not know, from its installation to a break point."""

import os
import subprocess
import time

import httpx
import pytest

from load_lab.settings import LOOPBACK
from load_lab.stack.engine import settings_of
from tests.support import pypi_app
from tests.support.ports import free_port
from tests.support.pypi_app import timed

pytestmark = [pytest.mark.alone, pytest.mark.machine(part="apps")]

FOLDER = pypi_app.folder_of("nautobot")
NAME, PASSWORD = "nautobot", "only-for-tests"
STORED = "nautobot_complete"
# Of the first break point, from the first typed line.
MOST_SECONDS = 600


def run(*argv, env):
    subprocess.run(argv, env=env, cwd=FOLDER, check=True, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def programs():
    return pypi_app.install(NAME)


@pytest.fixture(scope="module")
def environ(stack, programs):
    """Return the environment of Nautobot, with a Redis of its own and a database with its data."""
    with pypi_app.redis(FOLDER) as redis:
        env = os.environ | {
            "NAUTOBOT_ROOT": str(FOLDER / "root"),
            "NAUTOBOT_DB_HOST": LOOPBACK,
            "NAUTOBOT_DB_PORT": str(settings_of(stack).LAB_POSTGRES_PORT),
            **{f"NAUTOBOT_DB_{key}": NAME for key in ("USER", "NAME")},
            "NAUTOBOT_DB_PASSWORD": PASSWORD,
            "NAUTOBOT_REDIS_HOST": LOOPBACK,
            "NAUTOBOT_REDIS_PORT": str(redis),
            "NAUTOBOT_ALLOWED_HOSTS": "*",
            "DJANGO_SUPERUSER_PASSWORD": PASSWORD,
        }
        fill_database(stack, programs, env)
        yield env


def fill_database(stack, programs, env):
    """Create the database and Nautobot's own test data, unless an earlier run has."""
    if pypi_app.create_database(stack, NAME, PASSWORD, STORED):
        return
    command = str(programs / "nautobot-server")
    if not (FOLDER / "root/nautobot_config.py").exists():
        run(command, "init", "--disable-installation-metrics", env=env)
    with timed("migrate its database"):
        run(command, "post_upgrade", env=env)
    with timed("generate its test data"):
        run(command, "generate_test_data", "--flush", "--no-input", "--seed", "lab", env=env)
    user = ("--no-input", "--username", "admin", "--email", "admin@example.org")
    run(command, "createsuperuser", *user, env=env)
    pypi_app.store_database(stack, NAME, STORED)


@pytest.fixture(scope="module")
def url(environ, programs):
    options = ["nautobot.core.wsgi"]
    with pypi_app.gunicorn(programs, free_port(), options, environ, FOLDER) as address:
        yield address


def test_break_point_of_nautobot(lab, stack, url, tmp_path):
    login = ("admin", PASSWORD)
    token = httpx.post(f"{url}/api/users/tokens/", auth=login, json={}, timeout=120).json()["key"]
    name = str(tmp_path / "nautobot.toml")
    started = time.monotonic()
    with timed("five lines of typing"):
        (tmp_path / "nautobot.toml").write_text(
            f'url = "{url}"\nopenapi = "/api/swagger.json"\nready = "/api/status/"\n'
            'ready_seconds = 60\n[headers]\nAuthorization = "Token ${NAUTOBOT_TOKEN}"\n'
        )
        made = lab("mix", "make", name, "--most", "5", "--json", NAUTOBOT_TOKEN=token)
        assert made.code == 0, made.err
        ramp = ("--rate", "30", "--duration", "60s", "--json")
        run = lab("k6", "breakpoint", "--target", name, *ramp, NAUTOBOT_TOKEN=token)
        assert run.code == 0, run.err
    assert time.monotonic() - started < MOST_SECONDS
    reads = [each for each in made.json["operations"] if each["method"] == "GET"]
    headers = {"Authorization": f"Token {token}"}
    with httpx.Client(base_url=url, headers=headers, timeout=120) as client:
        missed = [each for each in made.json["left_out"] if is_read_with_an_object(each, client)]
    print(f"{len(reads)} GET operations in the mix; left out with an object in the data:")
    for each in missed:
        print(f"  {each['name']}: {each['status']} {each['reason']}")
    assert len(reads) / (len(reads) + len(missed)) >= 0.95
    assert run.json["outcome"] == "broke"
    assert run.json["failed"] / run.json["requests"] < 0.01
    assert run.json["recorded"]["k6"] == run.json["recorded"]["prometheus"]
    assert {"target", "postgres", "redis-server"} <= set(run.json["cpu_ms_per_request"])
    print(run.err)


def is_read_with_an_object(left_out, client):
    """Tell whether it is a GET whose list, if it has one, is not empty."""
    method, _, template = left_out["name"].partition(" ")
    if method != "GET":
        return False
    above, parameter, _ = template.partition("{")
    response = client.get(above)
    is_list = bool(parameter) and response.status_code == httpx.codes.OK
    return not is_list or response.json().get("count") != 0
