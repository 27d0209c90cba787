"""What old channel layers keep in shared memory: it outlives the processes that made it.

On Linux segments and semaphores are files of /dev/shm.
"""

from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from lab.paths import State


def prefix(state: State) -> str:
    """Of this stack's names: two stacks on one machine must not share a channel layer."""
    return f"load-lab-{sha256(str(state.base).encode()).hexdigest()[:8]}"


def remove(state: State) -> None:
    """All of this stack's; nothing may use it any more, since what lives makes it anew."""
    for pattern in (f"{prefix(state)}-*", f"sem.{prefix(state)}-*"):
        for path in Path("/dev/shm").glob(pattern):  # noqa: S108
            with suppress(FileNotFoundError):
                path.unlink()
