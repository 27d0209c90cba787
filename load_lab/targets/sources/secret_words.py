"""Credentials in a request: a mix is a file that people share, so it must have none."""

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any
from urllib.parse import unquote_plus

# Anywhere in a name: `access_token`, `sessionid`, `X-Amz-Signature`.
_PARTS = ("token", "secret", "passw", "session", "signature", "credential", "apikey", "csrf")
# As a whole word of a name: `key` in `api_key`, not in `keyword`.
_WORDS = frozenset(
    {
        *("auth", "authorization", "code", "hmac", "jwt", "key", "otp", "pass", "pin", "pwd"),
        *("sid", "sig", "ticket"),
    }
)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_PARAMETERS = re.compile("[?;]")
_JSON_WEB_TOKEN = re.compile(r"eyJ[\w-]+\.[\w-]+\.")
# Names of a form, as a browser sends it (`a=1&b=2`), and of one with files.
_FORM_NAME = re.compile(r'(?:^|[&;?])([^=&;]*)|\bname="([^"]*)"')


def credential_in_target(target: str) -> str | None:
    """Return the word that says that path or query string has a credential; None if none does."""
    if "eyJ" in target and _JSON_WEB_TOKEN.search(unquote_plus(target)):
        return "JSON Web Token"
    # A path may have parameters too: /orders;jsessionid=…
    _, *parameters = _PARAMETERS.split(target, maxsplit=1)
    return credential_in_form(parameters[0]) if parameters else None


def credential_in_form(text: str) -> str | None:
    for plain, quoted in _FORM_NAME.findall(text):
        if word := _credential_word(plain or quoted):
            return word
    return None


def credential_in_body(text: str) -> str | None:
    """Return the word that says that a body has a credential: JSON, or a form."""
    if _JSON_WEB_TOKEN.search(text):
        return "JSON Web Token"
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return credential_in_form(text)
    return next(filter(None, map(_credential_word, _keys(document))), None)


@lru_cache(maxsize=10_000)
def credential_in_template(template: str) -> str | None:
    """Return the word that says that a parameter of a path is a credential.

    Only long words: the `code` or `key` of a path is often the id of an object.
    """
    names = re.findall(r"\{([^{}]*)\}", template.lower())
    return next((part for part in _PARTS for name in names if part in name), None)


@lru_cache(maxsize=10_000)
def _credential_word(name: str) -> str | None:
    decoded = unquote_plus(name)
    compact = re.sub(r"[^a-z]", "", decoded.lower())
    words = (word.lower() for word in _WORD.findall(decoded))
    parts = (part for part in _PARTS if part in compact)
    return next(parts, None) or next((word for word in words if word in _WORDS), None)


def _keys(document: Any) -> Iterator[str]:
    match document:
        case dict():
            yield from document
            for value in document.values():
                yield from _keys(value)
        case list():
            for value in document:
                yield from _keys(value)
