"""What an app is connected to, although each connection lasts milliseconds."""

import json
import os
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import quote

import httpx
import psycopg
import pytest

from load_lab.machine.sockets import peers_of
from load_lab.paths import ROOT
from load_lab.stack.native.supervision import port_is_open, wait_for
from load_lab.targets.databases import Place, declared_by_django, declared_by_url
from load_lab.targets.declared import find_target
from load_lab.targets.file import Variation
from load_lab.targets.observation import Sightings, observe, server_processes
from load_lab.targets.variants import vary
from tests.support.ports import free_port
from tests.support.postgres_server import running_postgres

PROJECT = ROOT / "tests/support/short_django"
MANAGE = [sys.executable, str(PROJECT / "manage.py")]
SQLITE = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
# A network for documentation: nothing answers there.
ELSEWHERE = "192.0.2.1"
POOLER = f"""#!{sys.executable}
import socket, sys
import psycopg
# Like pgbouncer: one connection to Postgres stays, those of clients do not.
kept = psycopg.connect(sys.argv[2])
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    while True:
        client, _ = server.accept()
        with client, socket.create_connection(("127.0.0.1", int(sys.argv[3]))) as onward:
            onward.settimeout(0.02)
            client.settimeout(0.02)
            while True:
                pairs = ((client, onward), (onward, client))
                closed = False
                for source, drain in pairs:
                    try:
                        data = source.recv(65536)
                        closed = closed or not data
                        drain.sendall(data)
                    except TimeoutError:
                        pass
                if closed:
                    break
"""


@pytest.fixture(autouse=True)
def _no_variables_of_libpq(monkeypatch):
    for name in ("PGHOST", "PGPORT", "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def postgres():
    with running_postgres() as server:
        yield server


@contextmanager
def served(database):
    """Start the project; yield its address."""
    port = free_port()
    argv = [sys.executable, "-m", "gunicorn", "--workers", "2", "--bind", f"127.0.0.1:{port}"]
    environ = {**os.environ, "SHOP_DATABASE": json.dumps(database)}
    process = subprocess.Popen([*argv, "manage:application"], cwd=PROJECT, env=environ)
    try:
        wait_for(lambda: port_is_open("127.0.0.1", port), seconds=30, what="gunicorn")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def quiet():
    """Return the address of the project without a database server."""
    with served(SQLITE) as url:
        yield url


@contextmanager
def visited(url, per_second=20):
    """Request pages during the block."""
    done = threading.Event()

    def visit():
        while not done.wait(1 / per_second):
            httpx.get(f"{url}/items/", timeout=30).raise_for_status()

    thread = threading.Thread(target=visit)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def target(tmp_path, url, text=""):
    path = tmp_path / "shop.toml"
    path.write_text(f'url = "{url}"\n{text}')
    return find_target(str(path))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", ""])
def test_database_of_short_connections_is_found_and_stays(postgres, tmp_path, host):
    with served(postgres.settings(host)) as url:
        app = target(tmp_path, url)
        assert list(app.pids) == ["target"]
        (asked,) = app.unseen_services()
        assert "Name it in" in asked
        assert "postgres = " in asked
        with visited(url):
            app.look_for_database(20)
        # Nothing is connected now, nor for a variant of it, nor while it is down.
        found = replace(app).pids
        assert found == {"target": found["target"], "postgres": postgres.pid}
        assert app.unseen_services() == []
    assert app.unseen_services() == []


def test_sampler_finds_the_database_under_load(postgres, tmp_path):
    """Each look is short: of many, some see a connection."""
    with served(postgres.settings("")) as url:
        app = target(tmp_path, url)
        watched = app.watched()
        pids = server_processes(*watched.server_pids)
        with visited(url):
            wait_for(
                lambda: watched.look(pids) or app.sightings.has_database,
                seconds=30,
                what="a connection",
            )
        assert app.pids["postgres"] == postgres.pid


def test_pooler_and_the_database_behind_it_are_found(postgres, tmp_path):
    program, port = tmp_path / "pgbouncer", free_port()
    program.write_text(POOLER)
    program.chmod(0o755)
    behind = f"postgresql://postgres@127.0.0.1:{postgres.port}/postgres"
    pooler = subprocess.Popen([program, str(port), behind, str(postgres.port)])
    try:
        wait_for(lambda: port_is_open("127.0.0.1", port), seconds=30, what="the pooler")
        with served(postgres.settings("127.0.0.1") | {"PORT": str(port)}) as url:
            app = target(tmp_path, url)
            with visited(url):
                app.look_for_database(20)
            found = app.pids
            assert (found["pgbouncer"], found["postgres"]) == (pooler.pid, postgres.pid)
            # Only the server's own requests wait there.
            dependencies = app.watched().find_dependencies()
            assert dependencies == {"pgbouncer": (("127.0.0.1", port),)}
    finally:
        pooler.kill()
        pooler.wait()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", ""])
@pytest.mark.parametrize("source", ["postgres", "manage"])
def test_declared_database_is_found_without_a_connection(
    postgres, quiet, tmp_path, monkeypatch, host, source
):
    settings = postgres.settings(host)
    where = f"[{host}]" if ":" in host else quote(settings["HOST"], safe="")
    lines = {
        "postgres": f'postgres = "postgresql://postgres@{where}:{postgres.port}/postgres"',
        "manage": f"manage = {MANAGE}",
    }
    monkeypatch.setenv("SHOP_DATABASE", json.dumps(settings))
    app = target(tmp_path, quiet, lines[source])
    assert app.pids["postgres"] == postgres.pid
    assert app.unseen_services() == []


def test_database_of_another_variant_counts_in_all(postgres, quiet, tmp_path):
    lines = f"manage = {MANAGE}\n[start]\ncommand = ['true']\n[start.env]\nSHOP_DATABASE = "
    app = target(tmp_path, quiet, f"{lines}'{json.dumps(SQLITE)}'")
    assert list(app.pids) == ["target"]
    env = {"SHOP_DATABASE": json.dumps(postgres.settings("127.0.0.1"))}
    assert vary(app, Variation(env=env)).pids["postgres"] == postgres.pid
    assert app.pids["postgres"] == postgres.pid


@pytest.mark.parametrize(
    "text",
    [
        f'postgres = "postgresql://shop@{ELSEWHERE}/shop"',
        f'postgres = "postgresql://shop@{ELSEWHERE}:6432/shop"',
        f"manage = {MANAGE}",
    ],
)
def test_database_on_another_host_is_named(quiet, tmp_path, monkeypatch, text):
    elsewhere = {"ENGINE": "django.db.backends.postgresql", "NAME": "shop", "HOST": ELSEWHERE}
    monkeypatch.setenv("SHOP_DATABASE", json.dumps(elsewhere))
    app = target(tmp_path, quiet, text)
    assert list(app.pids) == ["target"]
    (said,) = app.unseen_services()
    assert said.startswith(f"the service at {ELSEWHERE}:")
    assert "on another host" in said


def test_database_in_a_file_is_nothing_to_ask_for(quiet, tmp_path, monkeypatch):
    monkeypatch.setenv("SHOP_DATABASE", json.dumps(SQLITE))
    app = target(tmp_path, quiet, f"manage = {MANAGE}")
    assert list(app.pids) == ["target"]
    assert app.unseen_services() == []


def test_database_that_is_down_or_hidden_is_named(quiet, tmp_path):
    port = free_port()
    app = target(tmp_path, quiet, f'postgres = "postgresql://shop@127.0.0.1:{port}/shop"')
    assert list(app.pids) == ["target"]
    (said,) = app.unseen_services()
    assert said == f"127.0.0.1:{port}: its processes are not visible. Run `lab` as root"


def test_ended_connections_are_named_if_it_is_not_known_whose(postgres, quiet, tmp_path):
    psycopg.connect(f"postgresql://postgres@127.0.0.1:{postgres.port}/postgres").close()
    app = target(tmp_path, quiet)
    assert list(app.pids) == ["target"]
    (said,) = app.unseen_services()
    assert f"postgres at 127.0.0.1:{postgres.port} has connections that end too soon" in said


@pytest.mark.parametrize(
    ("settings", "databases", "unknown"),
    [
        (
            {"ENGINE": "django.db.backends.postgresql", "HOST": "127.0.0.1"},
            (Place("127.0.0.1", 5432),),
            (),
        ),
        (
            {"ENGINE": "django.db.backends.postgresql", "HOST": "/srv/pg/", "PORT": 5433},
            (Place("/srv/pg/.s.PGSQL.5433"),),
            (),
        ),
        (
            {"ENGINE": "django.db.backends.postgresql", "HOST": "10.0.0.1,10.0.0.2"},
            (Place("10.0.0.1", 5432), Place("10.0.0.2", 5432)),
            (),
        ),
        ({"ENGINE": "django.contrib.gis.db.backends.postgis", "HOST": "10.0.0.1"}, None, None),
        (
            {"ENGINE": "django.db.backends.postgresql", "OPTIONS": {"service": "shop"}},
            (),
            ("postgresql",),
        ),
        (
            {"ENGINE": "django.db.backends.postgresql", "HOST": "db.invalid"},
            (),
            ("postgresql db.invalid",),
        ),
        (
            {"ENGINE": "django.db.backends.mysql", "HOST": "10.0.0.3"},
            (Place("10.0.0.3", 3306),),
            (),
        ),
        (SQLITE, (), ()),
        ({"ENGINE": "django.db.backends.dummy"}, (), ()),
    ],
)
def test_places_are_read_from_django_settings(settings, databases, unknown):
    complete = {"NAME": "shop", **settings}
    environ = {**os.environ, "SHOP_DATABASE": json.dumps(complete)}
    environ |= {"SHOP_CACHE": "redis://:secret-word@10.0.0.9:6380/1"}
    found = declared_by_django(MANAGE, PROJECT, environ)
    assert found.why == ""
    assert "secret-word" not in repr(found)
    assert found.caches == (Place("10.0.0.9", 6380),)
    if databases is not None:
        assert (found.databases, found.unknown) == (databases, unknown)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["/no/such/python"], "cannot be started"),
        (["false"], "failed (1)"),
        (["echo", "<<<databases [1] databases>>>"], "other databases"),
        ([sys.executable, "-c", "raise RuntimeError('no settings')"], "no settings"),
    ],
)
def test_project_that_prints_no_databases_has_a_reason(tmp_path, command, why):
    found = declared_by_django(command, tmp_path, os.environ)
    assert why in found.why
    assert not found.is_complete


@pytest.mark.parametrize(
    ("url", "places"),
    [
        ("postgresql://shop@127.0.0.1/shop", (Place("127.0.0.1", 5432),)),
        ("postgres://shop:word@[::1]:5433/shop", (Place("::1", 5433),)),
        ("postgresql:///shop?host=/srv/pg&port=5434", (Place("/srv/pg/.s.PGSQL.5434"),)),
        ("postgresql://shop@%2Fsrv%2Fpg/shop", (Place("/srv/pg/.s.PGSQL.5432"),)),
        ("postgresql://10.0.0.1:1,10.0.0.2:2/shop", (Place("10.0.0.1", 1), Place("10.0.0.2", 2))),
    ],
)
def test_places_are_read_from_the_address_of_postgres(url, places):
    assert declared_by_url(url).databases == places


def test_clients_of_a_process_are_not_its_peers(tmp_path):
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as unix, socket.create_server(("127.0.0.1", 0)) as tcp:
        unix.bind(path)
        unix.listen()
        program = (
            "import socket, sys, time;"
            "a = socket.create_connection(('127.0.0.1', int(sys.argv[2])));"
            "b = socket.socket(socket.AF_UNIX); b.connect(sys.argv[1]); time.sleep(60)"
        )
        port = tcp.getsockname()[1]
        client = subprocess.Popen([sys.executable, "-c", program, path, str(port)])
        try:
            with unix.accept()[0], tcp.accept()[0]:
                places = [("127.0.0.1", port), (path, 0)]
                assert peers_of([client.pid]) == places
                own = peers_of([os.getpid()])
                assert not {*places} & {*own}
        finally:
            client.kill()
            client.wait()


def test_two_services_of_one_name_keep_their_names(postgres):
    with running_postgres() as other, served(SQLITE) as url:
        seen = Sightings()
        seen.places[Place("127.0.0.1", other.port)] = None
        assert observe(url, seen)["postgres"] == other.pid
        # The same one, by another way, and one that is seen later.
        seen.onward[Place(str(other.sockets / f".s.PGSQL.{other.port}"))] = None
        seen.places[Place("::1", other.port)] = None
        seen.places[Place("127.0.0.1", postgres.port)] = None
        found = observe(url, seen)
        assert (found["postgres"], found["postgres-2"]) == (other.pid, postgres.pid)
        assert len(found) == 3
