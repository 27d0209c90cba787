"""A declared target in containers, and the docker engine without the hotel API.

Last in the folder: its stack ends without the hotel API.
"""

import json
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest

from load_lab.targets.observation import observe
from tests.support.ports import free_port

DOCUMENT = {
    "openapi": "3.0.3",
    "info": {"title": "Files", "version": "1"},
    "paths": {
        f"/{name}": {"get": {"responses": {"200": {"description": "the file"}}}}
        for name in ("openapi.json", "items.json")
    },
}


@pytest.fixture
def files(tmp_path):
    """Write a file of a target that the lab starts with `docker run`; return its path."""
    (tmp_path / "openapi.json").write_text(json.dumps(DOCUMENT))
    (tmp_path / "items.json").write_text("[]")
    for path in (tmp_path, *tmp_path.iterdir()):
        path.chmod(0o755)
    port, name = free_port(), "load-lab-test-target"
    run = ["docker", "run", "--rm", "--init", "--name", name, "--publish", f"127.0.0.1:{port}:8000"]
    run += ["--volume", f"{tmp_path}:/files:ro", "--workdir", "/files", "{image}"]
    path = tmp_path / "files.toml"
    path.write_text(f"""
url = "http://127.0.0.1:{port}"
openapi = "/openapi.json"
[start]
command = {[*run, "python", "-m", "http.server", "8000"]}
options = {{ image = "load-lab-backend" }}
""")
    yield str(path)
    argv = ["docker", "ps", "--quiet", "--filter", f"name={name}"]
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout == ""


@contextmanager
def visitors(url):
    """Request pages during the block: a sync worker closes each connection after its response."""
    done = threading.Event()

    def visit():
        while not done.is_set():
            httpx.get(f"{url}/api/hotel/", timeout=30).raise_for_status()

    with ThreadPoolExecutor(4) as pool:
        visits = [pool.submit(visit) for _ in range(4)]
        try:
            yield
        finally:
            done.set()
    for each in visits:
        each.result()


def test_containers_behind_a_port_are_found(engine, target, poll):
    found = {}

    def all_found():
        found.update(observe(target))
        return {"target", "backend", "postgres"} <= found.keys()

    with visitors(target):
        poll(all_found, seconds=60)
    known = engine.pids()
    assert found["target"] == known["nginx"]
    assert (found["backend"], found["postgres"]) == (known["backend"], known["postgres"])
    assert not {"prometheus", "alloy", "backend-metrics"} & found.keys()


def test_container_is_started_loaded_and_stopped_without_the_hotel(up, lab_on_docker, files):
    started = lab_on_docker("up", "--target", files, "--json")
    assert started.code == 0, started.err
    running = {each["name"] for each in started.json["services"] if each["state"] == "running"}
    assert running <= {"prometheus", "grafana"}
    assert started.json["missing_series"]["text"] == ""
    made = lab_on_docker("mix", "make", files, "--json")
    assert made.code == 0, made.err
    assert len(made.json["operations"]) == 2
    flags = ("--rate", "20", "--duration", "12s", "--target", files, "--json")
    # The stack's environment names the hotel API, for plain k6.
    run = lab_on_docker("k6", "hold", *flags, BASE_URL="")
    assert run.code == 0, run.err
    assert run.json["failed"] == 0
    assert run.json["recorded"]["k6"] == run.json["recorded"]["prometheus"] >= 240
    assert run.json["cpu_ms_per_request"]["target"] > 0
