"""Arms of the old stacks in real processes, if the machine has their Python."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest

from load_lab.experiments.cell import StackBench
from load_lab.experiments.files import parse
from load_lab.experiments.legacy import arms
from load_lab.experiments.legacy.arms import arm
from load_lab.experiments.legacy.environment import MissingRequirement, find_python
from load_lab.experiments.legacy.stacks import stack as stack_named
from load_lab.experiments.legacy_cell import CombinedBench, LegacyBench
from load_lab.experiments.matrix import cells
from load_lab.experiments.plan import make_plan
from load_lab.experiments.run_folder import Store
from load_lab.experiments.runner import run_plan
from load_lab.metrics.windows import Bounds
from load_lab.paths import current_state
from load_lab.settings import LOOPBACK
from load_lab.stack.native.supervision import leftovers, port_is_open

pytestmark = pytest.mark.full

# One of the two stacks with Django 3.0; the other differs in one package.
DJANGO_3, CHANNELS = "django-3.0-asgiref-3.4", "channels-2016"


def _require_python(name):
    try:
        find_python(stack_named(name).python)
    except MissingRequirement as error:
        pytest.skip(str(error))
    return name


@pytest.fixture
def leftover_ports(stack):
    """Check that no process, port or shared memory of an arm is left."""
    ports = []
    yield ports
    processes = [p for p in leftovers(current_state()) if "LAB_STARTED" in p.environ()]
    assert processes == []
    assert not any(port_is_open(LOOPBACK, port) for port in ports)
    assert list(Path("/dev/shm").glob("*load-lab-*")) == []


def _facts(running, ports):
    ports += [value for name, value in running.facts.items() if name.endswith("port")]
    return running.facts


# Slow: it builds a second old environment. test_channels_2016_arm_answers makes the same promise of
# the native engine, tests/compose/test_legacy.py of Django 3.0.
@pytest.mark.parametrize(
    ("name", "interface"), [("gunicorn-5", "wsgi"), ("uvicorn-5", "asgi"), ("daphne-1", "asgi")]
)
def test_django_3_0_arm_answers_its_routes(stack, leftover_ports, name, interface):
    with arm(stack, _require_python(DJANGO_3), name) as running:
        facts = _facts(running, leftover_ports)
        assert facts["server"] == name.partition("-")[0]
        assert (facts["django"], facts["asgiref"]) == ("3.0.14", "3.4.1")
        assert (facts["interface"], facts["thread_sensitive"]) == (interface, True)
        # Servers differ in how they call the views, not in the views.
        routes = stack_named(DJANGO_3).routes if interface == "wsgi" else []
        urls = [f"{running.target.url}/workbench/{name.replace('_', '-')}/" for name in routes]
        with ThreadPoolExecutor() as pool:
            for response in pool.map(lambda url: httpx.get(url, timeout=20), urls):
                assert response.status_code == 200, response.text
                assert response.json()["slept"] == 1


@pytest.mark.parametrize(
    ("name", "server", "layer", "processes"),
    [
        ("gunicorn-2", "gunicorn", None, {"legacy-web"}),
        ("daphne-ipc", "channels", "asgi_ipc", {"legacy-web", "legacy-worker-1"}),
        (
            *("daphne-redis-own-cpu", "channels", "asgi_redis"),
            {"legacy-redis", "legacy-web", "legacy-worker-1"},
        ),
    ],
)
def test_channels_2016_arm_answers(stack, leftover_ports, name, server, layer, processes):
    with arm(stack, _require_python(CHANNELS), name) as running:
        facts = _facts(running, leftover_ports)
        assert (facts["server"], facts.get("layer")) == (server, layer)
        assert facts["python"].startswith("3.6.")
        assert running.target.pids.keys() == processes
        response = httpx.get(f"{running.target.url}/workbench/hello/", timeout=20)
        assert response.json() == {"hello": "world"}
        if layer == "asgi_redis":
            redis = psutil.Process(running.target.pids["legacy-redis"])
            assert redis.cpu_affinity() == [int(facts["layer_cpus"])]
            assert facts["layer_cpus_shared_with"] in ("nobody", "the load generator")


EXPERIMENT = """schema_version = 1
repeats = 1
title = "t"
question = "q"
source = "s"
[[axis]]
name = "arm"
[axis.positions.today]
title = "today"
workload = { profile = "hold", scenario = "list", rate = 20, duration = "8s" }
[axis.positions.old]
title = "old"
legacy = { stack = "channels-2016", arm = "daphne-redis" }
workload = { profile = "hold", scenario = "workbench", route = "hello", rate = 20, duration = "8s" }
reset = "nothing"
"""


def test_cell_of_old_stack_is_measured_while_backend_is_idle(stack, leftover_ports, tmp_path):
    _require_python(CHANNELS)
    settings, experiment = stack.settings(), parse("t", EXPERIMENT)
    plan = make_plan(
        "t", EXPERIMENT, experiment, cells(experiment), only=["old"], repeats=None, quick=False
    )
    assert arms.missing_stacks(stack, settings, [CHANNELS]) == {}
    store, bounds = Store(tmp_path / "t-20260101-000000-abcd"), Bounds()
    legacy = LegacyBench(stack, settings, bounds)
    bench = CombinedBench(StackBench(stack, settings, bounds), legacy)
    assert run_plan(plan, store, bench) == []
    (cell,) = store.cells()
    result = cell.result
    assert result is not None
    assert (cell.legacy["stack"], cell.legacy["arm"]) == (CHANNELS, "daphne-redis")
    assert cell.legacy["layer"] == "asgi_redis"
    assert result.failed == result.missing_in_prometheus == 0
    assert result.requests >= 8 * 20
    assert result.services_cpu["legacy-worker-1"] > result.services_cpu["backend"]
    assert result.memory_peak_bytes > 10 * 1024**2
    assert cell.legacy["django"] == "1.10.8"
