"""Tiers of tests, and the real stack that they use, with separate ports and a separate directory.

A test without a mark belongs to `make test`; docs/testing.md explains the marks. `make test` runs
several pytest processes, each with its own stack. Whatever ran before, a test finds the stack with
the default settings and what it declares (`@pytest.mark.settings("LAB_DETAIL=fast")`); the tests of
a file are sorted by that, so that the stack is changed rarely.
"""

import os
import ssl
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parent
# gw0, gw1, …; not set when pytest runs in one process.
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
STATE = ROOT / ".lab" / ("test" if WORKER == "gw0" else f"test-{WORKER}")

# A small dataset, so that a naive response takes milliseconds. Tests that need the real sizes load
# them.
DATA = {
    "LAB_DATA_HOTELS": "4",
    "LAB_DATA_SUITES_PER_HOTEL": "15",
    "LAB_DATA_BOOKINGS_PER_SUITE": "5",
    "LAB_DATA_CUSTOMERS": "200",
    "LAB_DATA_POSTS": "1000",
}
# Different from the default ports, so that a stack can run during the tests.
PORTS = {
    "LAB_HTTP_PORT": "18080",
    "LAB_NGINX_STATUS_PORT": "18081",
    "LAB_BACKEND_PORT": "18001",
    "LAB_METRICS_PORT": "18002",
    "LAB_SECOND_SERVER_PORT": "18003",
    "LAB_TOXIPROXY_PORT": "28474",
    "LAB_POSTGRES_PORT": "64432",
    "LAB_REDIS_PORT": "16379",
    "LAB_PROMETHEUS_PORT": "19090",
    "LAB_ALLOY_PUSH_PORT": "19091",
    "LAB_PUSH_PORT": "19092",
    "LAB_EXPORTERS_PORT": "29200",
    "LAB_GRAFANA_PORT": "13000",
}


# Port offset between two pytest processes: larger than the port range of a stack, so that no two of
# their ports collide.
PORT_OFFSET = 100


def _profile(name: str, **values: Any) -> None:
    """Register a Hypothesis profile without a deadline: examples query the real database."""
    health_checks = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
    hypothesis_settings.register_profile(
        name, deadline=None, database=None, suppress_health_check=health_checks, **values
    )


# The same examples each time, for CI; `pytest --hypothesis-profile=thorough` generates new ones.
_profile("same", max_examples=12, stateful_step_count=25, derandomize=True)
_profile("thorough", max_examples=300, stateful_step_count=50)
hypothesis_settings.load_profile("same")


def _group(nodeid: str) -> str:
    """Return the group of a test: the folder below tests/, or the backend."""
    parts = nodeid.partition("::")[0].split("/")
    return "/".join(parts[:2]) if parts[0] in ("tests", "backend") else parts[0]


# The tests of these files share a fixture of the session, so they share one process.
GROUPS = {
    "telemetry": ("test_telemetry.py", "test_dashboard_queries.py", "test_grafana.py"),
}


class FileScheduling(LoadScopeScheduling):
    """Run all tests of a file in one process, because they share its fixtures."""

    def _split_scope(self, nodeid: str) -> str:
        name = Path(nodeid.partition("::")[0]).name
        return next((group for group, files in GROUPS.items() if name in files), name)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FileScheduling:
    return FileScheduling(config, log)


# Folders whose tests have a stack of another kind, in a fixture `stack` of their own.
OTHER_STACKS = ("tests/compose", "tests/faults")
# Fixtures whose tests belong to `make test-full`.
LONG = {"prepared_stack", "telemetry_run"}
DECLARED = pytest.StashKey[tuple[str, ...]]()
TIERS = pytest.StashKey[dict[str, set[str]]]()
# The settings of the test that runs, and the engine once it runs.
WANTED = pytest.StashKey["Settings"]()
ENGINE = pytest.StashKey["NativeEngine"]()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Give a test the marks that follow from its fixtures and its other marks."""
    if _uses_stack(item):
        item.add_marker("stack")
        assignments = [text for mark in item.iter_markers("settings") for text in mark.args]
        item.stash[DECLARED] = tuple(sorted(assignments))
    is_long = item.get_closest_marker("alone") or LONG & set(getattr(item, "fixturenames", ()))
    if is_long and not item.get_closest_marker("machine"):
        item.add_marker("full")
    # Here, since -m deselects tests later.
    item.config.stash.setdefault(TIERS, {})[item.nodeid] = _tiers(item)


def _tiers(item: pytest.Item) -> set[str]:
    marks = {mark.name for mark in item.iter_markers()}
    tier = next((name for name in ("full", "machine") if name in marks), "test")
    return {tier} | marks & {"core"}


def _uses_stack(item: pytest.Item) -> bool:
    is_other = item.nodeid.startswith(OTHER_STACKS)
    return "stack" in getattr(item, "fixturenames", ()) and not is_other


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that use the stack: they take longest. Within a file, tests that declare
    the same settings run together.
    """
    paths = {item.path for item in items if DECLARED in item.stash}
    items.sort(key=lambda item: (item.path not in paths, item.path, item.stash.get(DECLARED, ())))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Change the running stack to the settings that the test declares, before its fixtures."""
    if DECLARED not in item.stash:
        return
    from load_lab.machine.cpus import pinned
    from load_lab.settings import load_settings, update_settings

    wanted = pinned(update_settings(load_settings(), list(item.stash[DECLARED])))
    item.config.stash[WANTED] = wanted
    if engine := item.config.stash.get(ENGINE, None):
        running = engine.settings()
        if running is None:
            engine.up(wanted)
        elif running != wanted:
            engine.apply(wanted)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the duration of each test group, summed over all pytest processes."""
    seconds: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[_group(report.nodeid)] += report.duration
    terminalreporter.section("time by group")
    for group, duration in seconds.most_common():
        terminalreporter.write_line(f"{duration:6.0f} s  {group}")


def _ports() -> dict[str, str]:
    offset = PORT_OFFSET * int(WORKER.removeprefix("gw"))
    return {name: str(int(port) + offset) for name, port in PORTS.items()}


def _set_environment() -> None:
    """Set the environment of the lab and of Django, before either reads it."""
    for name in [name for name in os.environ if name.startswith("LAB_")]:
        del os.environ[name]
    os.environ.update(DATA, **_ports(), LAB_ENGINE="native", LAB_STATE_DIR=str(STATE))
    # Each pytest process measures by itself.
    os.environ["LAB_LOCK"] = str(STATE / "measurement.lock")

    from load_lab.paths import State
    from load_lab.settings import load_settings
    from load_lab.stack.native.services.start_order import backend_env

    django = backend_env(load_settings(), State(STATE))
    # Django reads the settings from the environment: no stack runs yet.
    del django["BACKEND_SETTINGS_FILE"]
    os.environ.update({k: v for k, v in django.items() if k.startswith(("BACKEND_", "PG"))})
    os.environ["BACKEND_ALLOWED_HOSTS"] = "localhost"
    _start_django()


# The tests' Django has every app, and all that the lab adds to Django. A stack with the default
# settings has neither; tests/stack/test_stock_django.py tests it.
DJANGO = {"LAB_WORKBENCH": "on", "LAB_WEBSOCKETS": "on", "LAB_BOOKING": "fast"}


def _start_django() -> None:
    from config.secrets import make_secrets

    make_secrets(STATE / "secrets")
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"

    import django

    os.environ.update(DJANGO)
    django.setup()
    # pytest's worker processes inherit the environment, and would read Django's settings before
    # this file. Stacks start with the default settings.
    for name in ("DJANGO_SETTINGS_MODULE", *DJANGO):
        del os.environ[name]


# httpx creates a context for each client, in 15 ms of CPU time: a tenth of the tests' duration.
ssl.create_default_context = cache(ssl.create_default_context)


# At import time, not in a hook: the conftest files below import models.
_set_environment()


@pytest.fixture(scope="session")
def tiers(request: pytest.FixtureRequest) -> dict[str, set[str]]:
    """Return the tiers of each collected test by its node id, whether it is selected or not."""
    return request.config.stash[TIERS]


@pytest.fixture(scope="session")
def stack(request: pytest.FixtureRequest) -> Iterator["NativeEngine"]:  # noqa: F821
    """Yield the native engine with all services running; stop it when the tests end."""
    from load_lab.paths import State
    from load_lab.settings import load_settings
    from load_lab.stack.native import NativeEngine

    engine = NativeEngine(State(STATE))
    engine.down()
    # A test whose database needs the stack does not name it.
    engine.up(request.config.stash.get(WANTED, None) or load_settings())
    request.config.stash[ENGINE] = engine
    yield engine
    engine.down()
