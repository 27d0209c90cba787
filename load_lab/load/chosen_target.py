"""What a command loads, by its options: the reference app, or a target of the user's own."""

import os
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from typing import TYPE_CHECKING

from load_lab.errors import LabError, UsageError
from load_lab.load.workloads import Place, Scenario

if TYPE_CHECKING:
    from load_lab.load.kubernetes.cluster import Cluster
    from load_lab.stack.engine import Engine
    from load_lab.targets.declared import DeclaredTarget
    from load_lab.targets.reference.app import ReferenceApp
    from load_lab.targets.target import Target


def require_reference_scenario(target: str | None, scenario: StrEnum | None) -> None:
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
    engine: "Engine", name: str | None, allowed_host: str | None, place: Place
) -> "AbstractContextManager[Target]":
    """Return what is loaded, started if its file says how."""
    from load_lab.stack.engine import settings_of
    from load_lab.targets.app_process import ready
    from load_lab.targets.reference.app import ReferenceApp

    target = find_target_of_load(engine, name, allowed_host, place)
    if isinstance(target, ReferenceApp):
        return nullcontext(target)
    if engine.settings() is None:
        raise LabError(f"Prometheus is not running. Start it: lab up --target {name}")
    return ready(target, settings_of(engine))


def find_target_of_load(
    engine: "Engine", name: str | None, allowed_host: str | None, place: Place
) -> "DeclaredTarget | ReferenceApp":
    """Return the target of that name, or the reference app, which a cluster reaches at another
    address (BASE_URL).

    Raises:
        UsageError: there is no such target, or its host may not be loaded.
    """
    from load_lab.targets.declared import find_allowed, require_allowed
    from load_lab.targets.reference.app import ReferenceApp

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
