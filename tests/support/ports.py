"""Ports for the servers that tests start."""

import os
import socket
from itertools import cycle

# Below the range that the kernel takes ports for outgoing connections from (32768 on Linux): one of
# those could take the port before its server listens. One range for each process of pytest.
_FIRST, _COUNT = 20_000, 2_000
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_ports = cycle(range(_FIRST + _WORKER * _COUNT, _FIRST + (_WORKER + 1) * _COUNT))


def free_port() -> int:
    """Return a port that nothing listens on, and that was not returned lately."""
    return next(port for port in _ports if _is_free(port))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
