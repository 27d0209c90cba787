"""Whether something could not be had because nobody answered: then it may be had elsewhere."""

import re

# As pip, Docker and the resolver say it. A package or an image that is there and wrong says other
# things: a hash that differs, a compiler's error.
_UNREACHABLE = re.compile(
    r"connection broken by|newconnectionerror|connecttimeouterror|readtimeouterror|proxyerror|"
    r"could not fetch url|read timed out|failed to establish a new connection|"
    r"name resolution|name or service not known|no such host|network is unreachable|"
    r"connection (refused|reset|timed out)|i/o timeout|handshake timeout|dial tcp|"
    r"failed to (do request|resolve source metadata)|request canceled|"
    r"pull access denied|manifest (unknown|for .* not found)",
    re.IGNORECASE,
)


def is_unreachable(said: str) -> bool:
    """Whether what a program `said` when it failed is that it could reach nobody."""
    return _UNREACHABLE.search(said) is not None
