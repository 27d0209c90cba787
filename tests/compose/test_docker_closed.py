"""Privileges of the containers' processes, as reported by the kernel, and access control."""

import json
import os
from pathlib import Path

import httpx
import psutil
import pytest
from config.secrets import PUSH_USER, READERS

from load_lab.stack.docker import _ONE_SHOT
from tests.compose.commands import check_output
from tests.stack.test_compose_closed import CAPABILITIES, ROOT_USERS
from tests.support.compose import config

# Bits of a capability set, https://man7.org/linux/man-pages/man7/capabilities.7.html
_BITS = {"CHOWN": 0, "DAC_OVERRIDE": 1, "SETGID": 6}
LOOPBACK = "127.0.0.1"

pytestmark = pytest.mark.core


@pytest.fixture(scope="module")
def processes(stack):
    """Return the processes of each running container, by service."""
    families = {}
    for line in stack.compose("ps", "--format", "json").splitlines():
        container = json.loads(line)
        pid = int(check_output("docker", "inspect", "-f", "{{.State.Pid}}", container["ID"]))
        if not psutil.pid_exists(pid):
            pytest.skip("the engine runs in a machine of its own, whose processes can't be seen")
        main = psutil.Process(pid)
        families[container["Service"]] = [main, *main.children(recursive=True)]
    services = config("docker-compose.yml").keys() - set(_ONE_SHOT) - stack.missing.keys()
    assert families.keys() == services
    return families


def _status(process):
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return {name: value.split() for name, _, value in (line.partition(":") for line in lines)}


def test_processes_have_only_listed_capabilities(processes):
    for service, family in processes.items():
        known = sum(1 << _BITS[name] for name in CAPABILITIES.get(service, ()))
        for process in family:
            status = _status(process)
            assert int(status["CapBnd"][0], 16) == known, (service, process.name())
            assert int(status["CapEff"][0], 16) in (0, known), (service, process.name())
            assert status["NoNewPrivs"] == ["1"], (service, process.name())


def test_only_listed_services_run_as_root(processes):
    users = {
        service: {uid for process in family for uid in _status(process)["Uid"]}
        for service, family in processes.items()
    }
    assert {service for service, uids in users.items() if "0" in uids} <= ROOT_USERS
    for name, reader in READERS.items():
        if name in users and reader.uid:
            assert users[name] == {str(reader.uid)}, name


def test_root_file_system_of_every_container_is_read_only(processes):
    for service, family in processes.items():
        mounts = Path(f"/proc/{family[0].pid}/mountinfo").read_text().splitlines()
        (root,) = (fields[5] for fields in map(str.split, mounts) if fields[4] == "/")
        assert "ro" in root.split(","), service


@pytest.mark.parametrize("service", ["postgres", "redis", "backend"])
def test_service_sees_only_its_secrets(stack, service):
    names = stack.compose("exec", "-T", service, "ls", "/run/lab-secrets").split()
    assert sorted(names) == sorted(READERS[service].names)


def test_redis_and_postgres_require_password_from_other_containers(stack):
    output = stack.compose("exec", "-T", "redis", "redis-cli", "-h", "redis", "ping")
    assert "NOAUTH" in output
    wrong = "psql 'postgresql://postgres:wrong@postgres/postgres' -c 'SELECT 1' 2>&1; true"
    output = stack.compose("exec", "-T", "postgres", "sh", "-c", wrong)
    assert "password authentication failed" in output
    # The same over the network from inside the container.
    none = "psql -w -h 127.0.0.1 -U postgres -c 'SELECT 1' 2>&1; true"
    assert "no password supplied" in stack.compose("exec", "-T", "postgres", "sh", "-c", none)


def test_metrics_ingress_requires_password_shown_in_readme(stack):
    argv = ("run", "--rm", "-T", "secrets", "cat", "/run/lab-secrets/push_password")
    password = stack.compose(*argv).strip()
    url = f"http://{LOOPBACK}:{os.environ['LAB_PUSH_PORT']}/api/v1/write"
    assert httpx.post(url).status_code == 401
    assert httpx.post(url, auth=(PUSH_USER, "wrong")).status_code == 401
    assert httpx.get(url, auth=(PUSH_USER, password)).status_code == 403
    # Authenticated, and rejected by the receiver as an invalid push.
    assert httpx.post(url, auth=(PUSH_USER, password), content=b"x").status_code == 400
