"""Containers have only the privileges that their programs need, each for a stated reason."""

import pytest
from config.secrets import READERS

from tests.support.compose import config

pytestmark = [pytest.mark.core, pytest.mark.full]

# Services with capabilities; SECURITY.md lists them too (tests/docs/test_security_page.py).
CAPABILITIES = {
    # Writes each program's secrets, readable only by that program.
    "secrets": {"CHOWN", "DAC_OVERRIDE"},
    # cAdvisor reads other users' files.
    "alloy": {"DAC_OVERRIDE"},
    # This Nginx, in front of Docker's socket (owned by root), sets its worker's groups.
    "docker-socket": {"SETGID"},
}
ROOT_USERS = {"secrets", "alloy", "docker-socket"}


@pytest.fixture(scope="module")
def services():
    load = config("docker-compose.load.yml", COMPOSE_PROFILES="remote")
    assert "generator-metrics" in load
    return config("docker-compose.yml") | load


def test_file_systems_are_read_only_and_privileges_cannot_grow(services):
    for name, service in services.items():
        assert service["read_only"] is True, name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert "privileged" not in service, name


def test_capabilities_are_dropped_except_listed_ones(services):
    assert {tuple(service["cap_drop"]) for service in services.values()} == {("ALL",)}
    capabilities = {
        name: set(each["cap_add"]) for name, each in services.items() if each.get("cap_add")
    }
    assert capabilities == CAPABILITIES


def test_only_listed_services_run_as_root(services):
    uids = {name: service["user"].partition(":")[0] for name, service in services.items()}
    assert all(uid.isdecimal() for uid in uids.values()), uids
    assert {name for name, uid in uids.items() if uid == "0"} == ROOT_USERS


def test_root_and_host_network_services_listen_only_on_loopback(services):
    """Alloy is the only root service with a port, on the loopback regardless of LAB_BIND. On the
    host's network, the load generator does not listen (tests/stack/test_listening.py).
    """
    on_host = {n for n, service in services.items() if service.get("network_mode") == "host"}
    assert on_host == {"load", "generator-metrics"}
    (flag,) = (word for word in services["generator-metrics"]["command"] if "listen-addr" in word)
    assert flag == "--server.http.listen-addr=127.0.0.1:12346"
    public = config("docker-compose.yml", LAB_BIND="0.0.0.0")
    for name in ROOT_USERS:
        ports = public[name].get("ports", [])
        assert {port["host_ip"] for port in ports} <= {"127.0.0.1"}, name
    for name in ("secrets", "docker-socket"):
        assert services[name]["network_mode"] == "none"


def _volumes(service):
    return {each["source"]: each for each in service.get("volumes", []) if "source" in each}


def test_each_program_has_its_own_read_only_secrets(services):
    holders = {}
    for name, service in services.items():
        for source, volume in _volumes(service).items():
            if source.startswith("secrets") and name != "secrets":
                assert volume["read_only"] is True, name
                assert source != "secrets", name
                holders.setdefault(source.removeprefix("secrets-"), set()).add(name)
    users = {name: int(service["user"].partition(":")[0]) for name, service in services.items()}
    for reader, names in holders.items():
        assert {users[name] for name in names} == {READERS[reader].uid}, reader
    # `legacy` is for the containers of the old stacks, which are not services here.
    assert set(holders) == set(READERS) - {"legacy"}
    django = {name for name in services if services[name]["image"] == "load-lab-backend"}
    assert holders.pop("backend") == django - {"secrets", "init"}
    assert all(len(names) == 1 for names in holders.values()), holders


def test_secrets_service_provides_secrets_to_every_reader(services):
    targets = {volume["target"] for volume in _volumes(services["secrets"]).values()}
    folder, readers = services["secrets"]["command"][-2:]
    assert {folder, *(f"{readers}/{name}" for name in READERS)} <= targets


def test_service_environments_contain_no_secrets(services):
    for name, service in services.items():
        words = ("PASSWORD", "TOKEN", "SECRET_KEY")
        secrets = {
            key: value
            for key, value in (service.get("environment") or {}).items()
            if any(word in key for word in words) and value and not value.startswith("/run/")
        }
        assert secrets == {}, name
