"""How the programs of the stack tell their versions; both engines ask them."""

import re

# By service. Nginx answers on standard error.
ASKED = {
    "postgres": ["postgres", "--version"],
    "redis": ["redis-server", "--version"],
    "nginx": ["nginx", "-v"],
    "toxiproxy": ["toxiproxy-server", "-version"],
    "prometheus": ["prometheus", "--version"],
    "grafana": ["grafana", "--version"],
    "alloy": ["alloy", "--version"],
    "k6": ["k6", "version"],
}


def version_in(said: str) -> str:
    """The first version number in what a program said of itself."""
    match = re.search(r"\d+(\.\d+)+", said)
    return match[0] if match else "unknown"
