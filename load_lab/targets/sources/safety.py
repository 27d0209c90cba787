"""Which operations are sent: those that only read, and those that write what the mix created; and
which requests have a credential: a mix is a file that people share, so it must have none.

A GET may act, and the words of its path or of its view say so. Words are compared whatever
separates them: `log-out`, `log_out`, `logOut` and `logout` are one.
"""

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, starmap
from typing import Any, get_args
from urllib.parse import unquote, unquote_plus

from load_lab.targets.mix import SAFE_METHODS, Method
from load_lab.targets.sources.described import ApiOperation, Observed
from load_lab.targets.sources.paths import Template, singular, words

_METHODS = frozenset(get_args(Method))

# Verbs that act wherever they stand. Their nouns (`approvals`, `senders`) are other words.
_ACTIONS = frozenset(
    words("""
    activate activation addto anonymize approve cancel clear confirm deactivate deactivation delete
    demote deny destroy disable dismiss downvote enable erase execute flush hijack impersonate
    invalidate kill loginas logoff logout markasread markread masquerade notify optin optout ping
    pseudonymize publish purge recalculate recompute reject reload remove renew reset restore retry
    revert revoke rollback send setlang shutdown signoff signout subscribe suspend terminate toggle
    truncate undo unlink upvote
    """)
)
# Verbs that are nouns as well: they act as a whole part of a path, or at its beginning or end
# (`/items/7/export/`, `/export-all/`, `/csv-export/`).
_COMMANDS = frozenset(
    words("""
    accept archive assign backup ban become block build buy charge claim clone close decline
    deploy disconnect downgrade drop duplicate expire export finish follow fork generate grant
    import increment install invite join leave like lock merge migrate move pause pay process
    promote pull push redeem refresh refund regen rotate run scan scrub seed skip snooze stop
    submit su sudo switch sync transfer trigger uninstall upgrade vote void warm wipe withdraw
    """)
)
# Verbs that act before another word, as in `/set-language/`, but not before that of a form. Alone
# they show something (`/set/`, `/start/`), but for some of them an object (`/jobs/7/start/`).
_BEFORE_OTHERS = frozenset(words("do empty make mark open rename resume save set start update"))
_ON_OBJECTS = frozenset(words("open resume roll save start transition"))
# What another service asks for: `/paypal/return/`, `/oauth_callback`.
_CALLED_BACK = frozenset(words("abort callback complete return webhook"))
# What is set for a visitor: `/locale/set`, `LocaleSet`.
_PREFERENCES = frozenset(words("cookie country currency lang language locale theme timezone"))
_FORMS = frozenset(words("account address form page password profile"))
# Before `/update/` they are a form, as any object is: `/profile/update/`, `/items/7/update/`.
_OWN = _FORMS | frozenset(words("customer me settings user"))
# The last word of a name for things, although it begins with a command: `/export-templates/`.
_THINGS = frozenset(
    words("""
    agent config date detail event file format history job list log page plan point policy record
    request result rule setting size state status step template time type
    """)
)
_PREFIXES = ("auto", "bulk", "force", "mass", "re", "un")
_VERBS = _ACTIONS | _COMMANDS
# What a verb is written together with: `clearcache`.
_OBJECTS = tuple(
    words("""
    account accounts all cache caches cart carts data email emails group groups hash index invite
    item items job jobs key keys language mail mails member members message messages newsletter now
    order orders session sessions team teams token tokens trash user users
    """)
)
# What makes another word of a verb: `publisher`, `cancellation`.
_ENDING = re.compile(
    r"[lt]?(?:e?[drs]|e?rs|ings?|ables?|als?|ances?|ments?|ations?|ions?|ness|l?y)"
)
# So short a verb is the beginning of many words: `sender`, `pingdom`.
_FEWEST_LETTERS = 5
# Words at the end of a view's name that tell nothing of what it does.
_VIEW_WORDS = frozenset(words("action ajax api get handler view viewset"))

# What an operation that writes may not do: it would change more than its object.
_FORBIDDEN = frozenset(
    words("""
    activate archive cancel confirm delete destroy disable login logout password ping purge remove
    reset revoke signout subscribe unsubscribe
    """)
)
# What DELETE says anyway.
_DELETES = frozenset({"delete", "destroy", "remove"})

# Of DRF's format_suffix_patterns(): a route besides the one without it.
_SUFFIX = re.compile(r"[.}]\{format\}/?$")
_SITEMAP = re.compile(r"/sitemap[^/]*\.xml$")
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_DELIMITER = re.compile(r"[/?&=;]")


# Anywhere in a name: `access_token`, `sessionid`, `X-Amz-Signature`.
_SECRET_PARTS = ("token", "secret", "passw", "session", "signature", "credential", "apikey", "csrf")
# As a whole word of a name: `key` in `api_key`, not in `keyword`.
_SECRET_WORDS = frozenset(
    {
        *("auth", "authorization", "code", "hmac", "jwt", "key", "otp", "pass", "pin", "pwd"),
        *("sid", "sig", "ticket"),
    }
)
_QUERY = re.compile("[?;]")
_JSON_WEB_TOKEN = re.compile(r"eyJ[\w-]+\.[\w-]+\.")
# Names of a form, as a browser sends it (`a=1&b=2`), and of one with files.
_FORM_NAME = re.compile(r'(?:^|[&;?])([^=&;]*)|\bname="([^"]*)"')


@dataclass(frozen=True)
class Safety:
    """What may be sent. `named` are names, templates or ids of operations that the user allows,
    `leave_out` those that are not sent. Without `writes`, only GET and HEAD are.
    """

    named: Collection[str] = ()
    leave_out: Collection[str] = ()
    writes: bool = False

    def reason(self, operation: ApiOperation) -> str:
        """Return why an operation is not sent; "" if it is."""
        if reason := self._general_reason(operation.method, _names(operation)):
            return reason
        if self.allows(operation):
            return ""
        if operation.method not in SAFE_METHODS:
            return _forbidden(operation)
        if extra := _extra(operation):
            return f"{extra}: name it to have it in the mix"
        return _stem_reason(stem_of_path(operation.template), *map(stem_of_view, operation.views))

    def allows(self, operation: ApiOperation) -> bool:
        """Return whether the user names the operation, so that words in it say nothing."""
        return bool(_names(operation) & set(self.named))

    def forbids(self, operation: ApiOperation) -> bool:
        """Return whether the user wants an operation left out."""
        return bool(_names(operation) & set(self.leave_out))

    def reason_of_record(self, request: Observed, name: str, template: Template | None) -> str:
        """Return why a request of a record, of the operation `name`, is not in the mix."""
        method, target, status = request[:3]
        path = name.partition(" ")[2]
        if method not in _METHODS:
            return "leave_out names it" if name in self.leave_out else "no method of a mix"
        if reason := self._general_reason(method, {name, path}):
            return reason
        if not target.startswith("/"):
            return "no path of this server"
        if status // 100 != 2 and status != 304:
            return f"answered {status // 100}xx" if status > 0 else "answered nothing"
        if word := _credential(request, template):
            return f"it may have a credential: {word}"
        if method not in SAFE_METHODS or name in self.named:
            return ""
        values = map(stem_of_value, _DELIMITER.split(target))
        views = map(stem_of_view, template.views if template else ())
        return _stem_reason(*values, stem_of_path(path), *views)

    def _general_reason(self, method: str, names: Collection[str]) -> str:
        if self.leave_out and set(self.leave_out) & set(names):
            return "leave_out names it"
        is_sent = method in SAFE_METHODS or self.writes
        return "" if is_sent else f"not safe: {method}"


READS = Safety()
WRITES = Safety(writes=True)


def _names(operation: ApiOperation) -> set[str]:
    return {operation.name, operation.template, operation.operation_id}


def _stem_reason(*stems: str | None) -> str:
    stem = next(filter(None, stems), None)
    return f"not safe: stem `{stem}`" if stem else ""


def _extra(operation: ApiOperation) -> str:
    """Return what an operation is that Django brings, and no visitor asks for often; "" if none."""
    if operation.operation_id.startswith("admin:"):
        return "Django's admin"
    if {"JavaScriptCatalog", "JSONCatalog"} & set(operation.views):
        return "a catalogue of translations"
    if "format" in dict(operation.patterns) and _SUFFIX.search(operation.template):
        return "the same as another, with a suffix for the format"
    return "a sitemap" if _SITEMAP.search(operation.template) else ""


def _forbidden(operation: ApiOperation) -> str:
    """Return why an operation that writes is not sent, although the user wants writes."""
    said = [*words(operation.template), *words(operation.operation_id)]
    expected = _DELETES if operation.method == "DELETE" else frozenset()
    found = sorted(_FORBIDDEN.intersection([*said, *_joined(said)]) - expected)
    return f"not safe: word `{found[0]}`" if found else ""


def _credential(request: Observed, template: Template | None) -> str | None:
    return (
        credential_in_target(request.target)
        or (credential_in_template(template.path_template) if template else None)
        or (credential_in_body(request.body) if request.body else None)
    )


@lru_cache(maxsize=10_000)
def stem_of_path(path: str) -> str | None:
    """Return the verb that says that a GET of this path, or template, acts; None if none does."""
    parts = _DELIMITER.split(unquote(path))
    stems = (_action_in(words(path)), *starmap(_command_of, pairwise(["", *parts])))
    return next(filter(None, stems), None)


@lru_cache(maxsize=10_000)
def stem_of_view(name: str) -> str | None:
    """Return the verb that says that the view of this name acts: `OrderApproveView`, `sync`."""
    parts = words(name)
    while parts and parts[-1] in _VIEW_WORDS:
        parts.pop()
    if stem := _action_in(parts):
        return stem
    if parts[-1:] == ["set"] and "view" not in parts and _PREFERENCES.intersection(parts):
        return "set"
    is_command = 0 < len(parts) <= 2 and parts[0] in _COMMANDS and not _is_thing(parts[-1])
    return parts[0] if is_command else None


@lru_cache(maxsize=10_000)
def stem_of_value(text: str) -> str | None:
    """Return the verb that is all of a value. A part of it says nothing: an article may be called
    `how-to-delete-a-user`.
    """
    return _action_of("".join(words(text)))


def _joined(parts: list[str]) -> list[str]:
    return [left + right for left, right in pairwise(parts)]


def _action_in(parts: list[str]) -> str | None:
    compounds = (each for each in _joined(parts) if each in _ACTIONS)
    found = (*map(_action_of, parts), *compounds, *map(_begun_with, parts))
    return next(filter(None, found), None)


def _action_of(word: str) -> str | None:
    """Return the verb of a word: `clear` of `clearcache`, `unlock` of itself."""
    without_object = [word.removesuffix(each) for each in _OBJECTS if word.endswith(each)]
    for verb in (word, *without_object):
        without_prefix = {verb.removeprefix(each) for each in _PREFIXES} - {verb}
        if verb in _ACTIONS or without_prefix & _VERBS or (verb != word and verb in _COMMANDS):
            return verb
    return None


def _begun_with(word: str) -> str | None:
    """Return the verb that another word follows: `delete` of `deletecarts`, none of `deleted`."""
    long = (each for each in _ACTIONS if len(each) >= _FEWEST_LETTERS and word.startswith(each))
    return next((each for each in long if not _ENDING.fullmatch(word[len(each) :])), None)


def _command_of(before: str, part: str) -> str | None:
    """Return the verb of a part of a path that is a command; `before` is the part before it."""
    found = words(_PLACEHOLDER.sub("", part))
    if not found:
        return None
    first, last = found[0], found[-1]
    is_thing = _is_thing(last)
    if first in _COMMANDS and not is_thing:
        return first
    if first in _BEFORE_OTHERS and len(found) > 1 and not is_thing and last not in _FORMS:
        return first
    if part in _ON_OBJECTS and _is_object(before):
        return part
    if part == "update" and before and not (_is_object(before) or _OWN & set(words(before))):
        return part
    if last == "set" and _PREFERENCES.intersection([*words(before)[-1:], *found]):
        return last
    is_called_back = last in _CALLED_BACK and first != "auto"
    return last if last in _COMMANDS or is_called_back else None


def _is_object(part: str) -> bool:
    return part.startswith("{") or any(character.isdigit() for character in part)


def _is_thing(word: str) -> bool:
    return bool({word, singular(word)} & _THINGS)


def credential_in_target(target: str) -> str | None:
    """Return the word that says that path or query string has a credential; None if none does."""
    if "eyJ" in target and _JSON_WEB_TOKEN.search(unquote_plus(target)):
        return "JSON Web Token"
    # A path may have parameters too: /orders;jsessionid=…
    _, *parameters = _QUERY.split(target, maxsplit=1)
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
    return next((part for part in _SECRET_PARTS for name in names if part in name), None)


@lru_cache(maxsize=10_000)
def _credential_word(name: str) -> str | None:
    decoded = unquote_plus(name)
    compact = re.sub(r"[^a-z]", "", decoded.lower())
    parts = (part for part in _SECRET_PARTS if part in compact)
    # `OTPcode` has the words `otp` and `code`, `userPin` has `pin`.
    found = (*words(decoded), *map(str.lower, re.findall("[A-Z]+|[a-z]+", decoded)))
    return next(parts, None) or next((word for word in found if word in _SECRET_WORDS), None)


def _keys(document: Any) -> Iterator[str]:
    match document:
        case dict():
            yield from document
            for value in document.values():
                yield from _keys(value)
        case list():
            for value in document:
                yield from _keys(value)
