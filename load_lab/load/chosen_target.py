"""What a command loads, by its options: the reference app, or a target of the user's own."""

import os
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from typing import TYPE_CHECKING

from load_lab.errors import LabError, UsageError
from load_lab.load.workloads import WRITING_SCENARIOS, Place, Scenario

if TYPE_CHECKING:
    from load_lab.load.kubernetes.cluster import Cluster
    from load_lab.settings import Settings
    from load_lab.stack.engine import Engine
    from load_lab.targets.declared import DeclaredTarget
    from load_lab.targets.file import Variation
    from load_lab.targets.reference.app import ReferenceApp
    from load_lab.targets.subject import Subject
    from load_lab.targets.target import Target


def _require_own_scenario(target: str | None, scenario: StrEnum | None) -> None:
    """Check that the load of a target of the user's own has no scenario of the reference app.

    Raises:
        UsageError: it has.
    """
    if target and scenario not in (None, Scenario.REPLAY):
        raise UsageError(
            f"--scenario {scenario} is one of the reference app. Leave it out: a target's "
            "requests come from its mix; --only selects some."
        )


def cluster_of(place: Place, context: str) -> "Cluster | None":
    """Return the cluster that sends the load, None for this machine.

    Raises:
        UsageError: a context is given for this machine.
    """
    from load_lab.load.kubernetes.cluster import Cluster

    if place == Place.KUBERNETES:
        return Cluster(context)
    if context:
        raise UsageError(f"--context {context} is for --on kubernetes. Leave it out, or add that.")
    return None


def loaded_target(
    engine: "Engine",
    name: str | None,
    allowed_host: str | None,
    place: Place,
    scenario: StrEnum | None,
) -> "AbstractContextManager[Target]":
    """Return what is loaded, started if its file says how.

    Raises:
        UsageError: as `find_target_of_load`.
    """
    from load_lab.stack.engine import settings_of
    from load_lab.targets.app_process import ready
    from load_lab.targets.reference.app import ReferenceApp

    target = find_target_of_load(engine, name, allowed_host, place, scenario)
    if isinstance(target, ReferenceApp):
        return nullcontext(target)
    if engine.settings() is None:
        raise LabError(f"Prometheus is not running. Start it: lab up --target {name}")
    return ready(target, settings_of(engine))


def find_subject(
    engine: "Engine",
    name: str | None,
    allowed_host: str | None,
    scenario: StrEnum | None,
    default: StrEnum,
    *,
    puts_data_back: bool = False,
) -> "Subject":
    """Return what a command measures: the target of that name, or the reference app with a
    scenario. That one gets load_db's data before each load which writes, or if the command wants
    it.

    Raises:
        UsageError: there is no such target, its host may not be loaded, or it has no scenario.
    """
    from load_lab.targets.declared import find_allowed
    from load_lab.targets.own import OwnSubject
    from load_lab.targets.reference.subject import ReferenceSubject

    _require_own_scenario(name, scenario)
    if name is not None:
        return OwnSubject(engine, find_allowed(name, allowed_host))
    chosen = scenario or default
    return ReferenceSubject(engine, chosen, puts_data_back or chosen in WRITING_SCENARIOS)


def find_measured(
    engine: "Engine",
    name: str,
    url: str,
    scenario: str,
    settings: "Settings | None",
    variation: "Variation",
) -> "Subject":
    """Return what a stored load was sent to, as it was then: by its target's name and address, the
    stack's settings, and the variant of its cell.

    Raises:
        UsageError: its file is gone, it is on another host, or it can't be as it was.
    """
    from load_lab.settings import load_settings, require_same
    from load_lab.targets.declared import find_target
    from load_lab.targets.file import target_path
    from load_lab.targets.observation import is_here
    from load_lab.targets.own import OwnSubject
    from load_lab.targets.reference.app import ReferenceApp, entry_of
    from load_lab.targets.reference.subject import ReferenceSubject, settings_as_measured
    from load_lab.targets.variants import vary

    running = engine.settings() or load_settings()
    if name == ReferenceApp.name and settings and (entry := entry_of(url, settings)):
        base = settings_as_measured(running, settings)
        return ReferenceSubject(engine, scenario, scenario in WRITING_SCENARIOS, entry, base)
    path = target_path(name)
    if not path.exists():
        raise UsageError(
            f"The run loaded {name} ({url}), and there is no {path}, so the lab can't start it "
            "again. A target of your own needs that file, with [start]."
        )
    target = find_target(name)
    if not is_here(target.url):
        raise UsageError(
            f"The run loaded {target.url}, which is on another host, so the lab can neither change "
            "it nor look into it. Run `lab` there."
        )
    require_same(running, settings or running, ("LAB_TARGET_CPUS",))
    return OwnSubject(engine, vary(target, variation))


def find_target_of_load(
    engine: "Engine",
    name: str | None,
    allowed_host: str | None,
    place: Place,
    scenario: StrEnum | None,
) -> "DeclaredTarget | ReferenceApp":
    """Return the target of that name, or the reference app, which a cluster reaches at another
    address (BASE_URL).

    Raises:
        UsageError: there is no such target, its host may not be loaded, or it has no scenario.
    """
    from load_lab.targets.declared import find_allowed, require_allowed
    from load_lab.targets.reference.app import ReferenceApp

    _require_own_scenario(name, scenario)
    if name is not None:
        target = find_allowed(name, allowed_host)
        _require_own_url(target.url)
        return target
    address = os.environ.get("BASE_URL", "") if place == Place.KUBERNETES else ""
    app = ReferenceApp(engine, address=address.rstrip("/"))
    _require_own_url(app.url)
    require_allowed(app.url, allowed_host)
    return app


def _require_own_url(url: str) -> None:
    """Reject the address of another server in the shell: k6's script reads it, the lab does not.

    Raises:
        UsageError: BASE_URL is set to it.
    """
    other = os.environ.get("BASE_URL", "").rstrip("/")
    if other and other != url:
        raise UsageError(
            f"BASE_URL={other} is set, but this command loads {url}. Remove it: unset BASE_URL. To "
            f"load that server: lab target add NAME {other}"
        )
