"""Redis in the native engine: its start, its users, its flush."""

import json

from load_lab.errors import LabError
from load_lab.paths import State, lab_file
from load_lab.settings import LOOPBACK, Settings
from load_lab.stack.native.program_paths import library_env, require
from load_lab.stack.native.services.service import Service


def url(settings: Settings) -> str:
    """Return Redis's address, without the password."""
    return f"redis://{LOOPBACK}:{settings.LAB_REDIS_PORT}"


def service(settings: Settings, state: State) -> Service:
    flags = {
        "bind": LOOPBACK,
        "port": settings.LAB_REDIS_PORT,
        "dir": state.run,
        # Redis's users, with the hash of a password (backend/config/secrets.py). Default: no
        # authentication.
        "aclfile": state.secrets / "redis.acl",
        # Keeps the command line, which identifies its processes in measurements. Default: yes.
        "set-proc-title": "no",
    }
    return Service(
        name="redis",
        argv=[
            str(require("redis-server")),
            str(lab_file("redis/redis.conf")),
            *(part for name, value in flags.items() for part in (f"--{name}", str(value))),
        ],
        port=settings.LAB_REDIS_PORT,
        url=url(settings),
        env=library_env(),
        cwd=state.run,
    )


def write_exporters_password(settings: Settings, state: State) -> None:
    """Write the password in the exporter's format, by address; readable only by the owner."""
    target = state.secrets / "redis-exporter.json"
    target.touch(mode=0o600)
    target.write_text(json.dumps({url(settings): state.secret("redis_password")}))


def empty(settings: Settings, state: State) -> None:
    """Delete all keys.

    Raises:
        LabError: Redis does not respond.
    """
    # Here, since its import takes 0.1 s of CPU time, and few commands need it.
    import redis

    port, password = settings.LAB_REDIS_PORT, state.secret("redis_password")
    try:
        redis.Redis(LOOPBACK, port, password=password, socket_timeout=10).flushall()
    except redis.RedisError as error:
        raise LabError(f"Redis can't be emptied ({error}). See `lab logs redis`.") from None
