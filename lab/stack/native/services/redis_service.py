"""Redis in the native engine: how it is started, who may ask it, how it is emptied."""

import json

import redis

from lab.errors import LabError
from lab.paths import ROOT, State
from lab.settings import LOOPBACK, Settings
from lab.stack.native.programs import library_env, require
from lab.stack.native.services.service import Service


def url(settings: Settings) -> str:
    """Its address, without the password."""
    return f"redis://{LOOPBACK}:{settings.LAB_REDIS_PORT}"


def service(settings: Settings, state: State) -> Service:
    flags = {
        "bind": LOOPBACK,
        "port": settings.LAB_REDIS_PORT,
        "dir": state.run,
        # Its users: a password's hash (backend/config/secrets.py). Default: everyone may all.
        "aclfile": state.secrets / "redis.acl",
        # Keeps the command line, by which its processes are measured. Default: yes.
        "set-proc-title": "no",
    }
    return Service(
        name="redis",
        argv=[
            str(require("redis-server")),
            str(ROOT / "redis/redis.conf"),
            *(part for name, value in flags.items() for part in (f"--{name}", str(value))),
        ],
        mark=f"--dir {state.run}",
        port=settings.LAB_REDIS_PORT,
        url=url(settings),
        env=library_env(),
        cwd=state.run,
    )


def write_exporters_password(settings: Settings, state: State) -> None:
    """The password in its exporter's own form, by address; for its owner alone."""
    target = state.secrets / "redis-exporter.json"
    target.touch(mode=0o600)
    target.write_text(json.dumps({url(settings): state.secret("redis_password")}))


def empty(settings: Settings, state: State) -> None:
    """Raises LabError when it does not answer."""
    port, password = settings.LAB_REDIS_PORT, state.secret("redis_password")
    try:
        redis.Redis(LOOPBACK, port, password=password, socket_timeout=10).flushall()
    except redis.RedisError as error:
        raise LabError(f"Redis can't be emptied ({error}). See `lab logs redis`.") from None
