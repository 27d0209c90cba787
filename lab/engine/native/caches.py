"""Emptying every cache of the native engine."""

import shutil

import redis

from lab.engine.native import backend
from lab.engine.native.supervision import Supervision, port_is_taken, wait_for
from lab.paths import State
from lab.settings import LOOPBACK, Settings


def empty(supervision: Supervision, settings: Settings, state: State) -> None:
    """Redis, Nginx' pages, and what the backend's processes hold."""
    redis.Redis(LOOPBACK, settings.LAB_REDIS_PORT).flushall()
    _empty_nginx(supervision, settings, state)
    if settings.LAB_LOCAL_CACHE != "off":
        backend.reload_workers(supervision, settings)


def _empty_nginx(supervision: Supervision, settings: Settings, state: State) -> None:
    """Nginx knows its files by memory that outlives a reload: it is stopped meanwhile."""
    kept = list(state.run.glob("cache-*"))
    if not kept:
        return
    supervision.stop_service("nginx")
    for folder in kept:
        shutil.rmtree(folder)
    supervision.start_service("nginx")
    wait_for(
        lambda: port_is_taken(settings.LAB_BIND, settings.LAB_HTTP_PORT),
        seconds=20,
        what="Nginx with empty caches",
    )
