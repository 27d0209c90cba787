"""CPU usage of the stack without load, by container, from the Docker engine."""

import json
import time

import httpx

from load_lab.stack.docker import _ONE_SHOT

SECONDS = 60
TARGET = ("postgres", "redis", "toxiproxy", "backend", "backend-beside", "backend-worker", "nginx")
MAX_TARGET_CORES = 0.05
MAX_MEASURING_CORES = 0.12
_SOCKET = "/var/run/docker.sock"


def test_idle_stack_uses_little_cpu(stack, report):
    stack.compose("up", "-d", "--wait")
    # The last start steps, such as the first autovacuum.
    time.sleep(10)
    before = _cpu_seconds(stack)
    time.sleep(SECONDS)
    after = _cpu_seconds(stack)
    cores = {name: (after[name] - before[name]) / SECONDS for name in before}
    report("Idle, in cores: " + ", ".join(f"{n} {v:.4f}" for n, v in sorted(cores.items())))
    target = sum(value for name, value in cores.items() if name in TARGET)
    assert target <= MAX_TARGET_CORES, cores
    assert sum(cores.values()) - target <= MAX_MEASURING_CORES, cores


def _cpu_seconds(stack):
    """Return the CPU time of each running container since its start."""
    lines = stack.compose("ps", "--format", "json").splitlines()
    containers = {each["Service"]: each["ID"] for each in map(json.loads, lines)}
    with httpx.Client(
        transport=httpx.HTTPTransport(uds=_SOCKET), base_url="http://docker", timeout=30
    ) as engine:
        return {
            name: _nanoseconds(engine, container) / 1e9
            for name, container in containers.items()
            if name not in _ONE_SHOT
        }


def _nanoseconds(engine, container):
    url = f"/containers/{container}/stats?stream=false&one-shot=true"
    return engine.get(url).raise_for_status().json()["cpu_stats"]["cpu_usage"]["total_usage"]
