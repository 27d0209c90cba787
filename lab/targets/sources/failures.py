"""What an error says, for the list of operations that are left out."""

import re
from collections.abc import Iterable

from lab.targets.sources.exchange import Exchange

_MOST_CHARACTERS = 200
_SHORTEST_SECRET = 6
_JSON_WEB_TOKEN = re.compile(r"eyJ[\w-]+(\.[\w-]+)*")


def failure_text(exchange: Exchange, sent: Iterable[str]) -> str:
    """Return the problem with the beginning of the answer, without the values of the headers that
    were sent: a target may echo them.
    """
    text = " ".join(exchange.body.decode(errors="replace").split())
    words = {word for value in sent for word in (value, *value.split())}
    for word in sorted(words, key=len, reverse=True):
        if len(word) >= _SHORTEST_SECRET:
            text = text.replace(word, "…")
    text = _JSON_WEB_TOKEN.sub("…", text)[:_MOST_CHARACTERS]
    return f"{exchange.problem}: {text}" if text else exchange.problem
