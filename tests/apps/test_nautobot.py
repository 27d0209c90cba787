"""Nautobot, a large app that the lab does not know, from its installation to a break point."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from hashlib import sha256

import httpx
import pytest

from load_lab.paths import ROOT
from load_lab.settings import LOOPBACK
from load_lab.stack.engine import settings_of
from load_lab.stack.native.program_paths import library_env, require
from load_lab.stack.native.supervision import port_is_open, wait_for
from tests.support.ports import free_port

pytestmark = [pytest.mark.alone, pytest.mark.machine(part="apps")]

FOLDER = ROOT / ".lab/apps/nautobot"
REQUIREMENTS = ROOT / "tests/apps/nautobot.txt"
NAME, PASSWORD = "nautobot", "only-for-tests"
# Of the first break point, from the first typed line.
MOST_SECONDS = 600


@contextmanager
def timed(what):
    started = time.monotonic()
    yield
    print(f"{time.monotonic() - started:6.0f} s  {what}", file=sys.__stderr__)


def run(*argv, env):
    subprocess.run(argv, env=env, cwd=FOLDER, check=True, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def programs():
    """Install Nautobot once; return the folder of its programs."""
    venv = FOLDER / f"venv-{hash_of(REQUIREMENTS)}"
    if not (venv / "complete").exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        with timed("install Nautobot"):
            run(sys.executable, "-m", "venv", "--clear", str(venv), env=os.environ)
            pip = (str(venv / "bin/pip"), "install", "--quiet", "--require-hashes")
            run(*pip, "-r", str(REQUIREMENTS), env=os.environ)
        (venv / "complete").touch()
    return venv / "bin"


def hash_of(path):
    return sha256(path.read_bytes()).hexdigest()[:12]


@pytest.fixture(scope="module")
def environ(stack, programs):
    """Return the environment of Nautobot, with a Redis of its own and a database with its data."""
    redis = free_port()
    server = [str(require("redis-server")), "--port", str(redis), "--save", "", "--bind", LOOPBACK]
    process = subprocess.Popen(
        server, env=os.environ | library_env(), cwd=FOLDER, stdout=subprocess.DEVNULL
    )
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
    try:
        wait_for(lambda: port_is_open(LOOPBACK, redis), seconds=10, what="Redis")
        fill_database(stack, programs, env)
        yield env
    finally:
        process.terminate()
        process.wait()


def fill_database(stack, programs, env):
    """Create the database and Nautobot's own test data, unless an earlier run has."""
    tables = "SELECT 1 FROM pg_database WHERE datname = 'nautobot_complete'"
    if stack.sql("postgres", tables):
        stack.sql(
            "postgres",
            "DROP DATABASE IF EXISTS nautobot WITH (FORCE)",
            "CREATE DATABASE nautobot TEMPLATE nautobot_complete OWNER nautobot",
        )
        return
    stack.sql(
        "postgres",
        "DROP DATABASE IF EXISTS nautobot WITH (FORCE)",
        "DROP ROLE IF EXISTS nautobot",
        f"CREATE ROLE nautobot LOGIN PASSWORD '{PASSWORD}'",
        "CREATE DATABASE nautobot OWNER nautobot",
    )
    command = str(programs / "nautobot-server")
    if not (FOLDER / "root/nautobot_config.py").exists():
        run(command, "init", "--disable-installation-metrics", env=env)
    with timed("migrate its database"):
        run(command, "post_upgrade", env=env)
    with timed("generate its test data"):
        run(command, "generate_test_data", "--flush", "--no-input", "--seed", "lab", env=env)
    user = ("--no-input", "--username", "admin", "--email", "admin@example.org")
    run(command, "createsuperuser", *user, env=env)
    stack.sql("postgres", "CREATE DATABASE nautobot_complete TEMPLATE nautobot")


@pytest.fixture(scope="module")
def url(environ, programs):
    """Start Nautobot under gunicorn on the target's CPUs; return its address."""
    port = free_port()
    server = [str(programs / "gunicorn"), "--workers", "2", "--timeout", "120"]
    bind = ["--bind", f"{LOOPBACK}:{port}", "nautobot.core.wsgi"]
    process = subprocess.Popen(["taskset", "-c", "0", *server, *bind], env=environ, cwd=FOLDER)
    address = f"http://{LOOPBACK}:{port}"
    try:
        wait_for(lambda: port_is_open(LOOPBACK, port), seconds=60, what="gunicorn")
        yield address
    finally:
        process.terminate()
        process.wait()


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
