"""Which operations are sent: those that only read, and those that write what the mix created.

A GET may act, and the words of its path or of its view say so. Words are compared whatever
separates them: `log-out`, `log_out`, `logOut` and `logout` are one.
"""

import re
from collections.abc import Collection
from functools import lru_cache
from itertools import pairwise, starmap
from urllib.parse import unquote

from load_lab.targets.mix import SAFE_METHODS
from load_lab.targets.sources.openapi import ApiOperation
from load_lab.targets.sources.paths import singular, words

# Verbs that act wherever they stand. Their nouns (`approvals`, `senders`) are other words.
_ACTIONS = frozenset(
    words("""
    activate activation addto approve cancel clear confirm deactivate deactivation delete demote
    deny destroy disable dismiss downvote enable erase execute flush hijack impersonate invalidate
    kill loginas logoff logout masquerade notify optin optout ping publish purge recalculate
    recompute reject reload remove renew reset restore retry revert revoke rollback send setlang
    shutdown signoff signout subscribe suspend terminate toggle truncate undo unlink upvote
    """)
)
# Verbs that are nouns as well: they act as a whole part of a path, or at its beginning or end
# (`/items/7/export/`, `/export-all/`, `/csv-export/`).
_COMMANDS = frozenset(
    words("""
    accept archive assign backup ban become block build buy charge claim clone close decline
    deploy disconnect downgrade drop duplicate export finish follow fork generate grant import
    increment install invite join leave like lock merge migrate move pause pay process promote pull
    push redeem refresh refund run scan seed skip snooze stop submit su sudo switch sync transfer
    trigger uninstall upgrade vote void warm withdraw
    """)
)
# Verbs that act before another word, as in `/set-language/`, but not before that of a form. Alone
# they show something (`/set/`, `/start/`), but for some of them an object (`/jobs/7/start/`).
_BEFORE_OTHERS = frozenset(words("do make mark open rename resume save set start update"))
_ON_OBJECTS = frozenset(words("open resume save start"))
_FORMS = frozenset(words("account address form page password profile"))
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
    account accounts all cache caches data email emails index invite item items job jobs language
    mail mails message messages newsletter now order orders session sessions token tokens user users
    """)
)
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

_SITEMAP = re.compile(r"/sitemap[^/]*\.xml$")
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_DELIMITER = re.compile(r"[/?&=;]")


def unsafe_reason(operation: ApiOperation, named: Collection[str]) -> str:
    """Return why an operation is not sent; "" if it only reads.

    `named` are names, templates or ids of operations that the user allows.
    """
    if operation.method not in SAFE_METHODS:
        return f"not safe: {operation.method}"
    if is_named(operation, named):
        return ""
    if extra := _extra(operation):
        return f"{extra}: name it to have it in the mix"
    stems = (stem_of_path(operation.template), *map(stem_of_view, operation.views))
    stem = next(filter(None, stems), None)
    return f"not safe: stem `{stem}`" if stem else ""


def _extra(operation: ApiOperation) -> str:
    """Return what an operation is that Django brings, and no visitor asks for often; "" if none."""
    if operation.operation_id.startswith("admin:"):
        return "Django's admin"
    if {"JavaScriptCatalog", "JSONCatalog"} & set(operation.views):
        return "a catalogue of translations"
    return "a sitemap" if _SITEMAP.search(operation.template) else ""


def left_out_reason(operation: ApiOperation, leave_out: Collection[str]) -> str:
    """Return why the user's `leave_out` keeps an operation from being sent; "" if it does not."""
    return "leave_out names it" if is_named(operation, leave_out) else ""


def forbidden_reason(operation: ApiOperation, named: Collection[str]) -> str:
    """Return why an operation that writes is not sent; "" if it is."""
    if is_named(operation, named):
        return ""
    said = [*words(operation.template), *words(operation.operation_id)]
    expected = _DELETES if operation.method == "DELETE" else frozenset()
    found = sorted(_FORBIDDEN.intersection([*said, *_joined(said)]) - expected)
    return f"not safe: word `{found[0]}`" if found else ""


def is_named(operation: ApiOperation, named: Collection[str]) -> bool:
    return bool({operation.name, operation.template, operation.operation_id} & set(named))


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
    return next(filter(None, (*map(_action_of, parts), *compounds)), None)


def _action_of(word: str) -> str | None:
    """Return the verb of a word: `clear` of `clearcache`, `unlock` of itself."""
    without_object = [word.removesuffix(each) for each in _OBJECTS if word.endswith(each)]
    for verb in (word, *without_object):
        without_prefix = {verb.removeprefix(each) for each in _PREFIXES} - {verb}
        if verb in _ACTIONS or without_prefix & _VERBS or (verb != word and verb in _COMMANDS):
            return verb
    return None


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
    return last if last in _COMMANDS else None


def _is_object(part: str) -> bool:
    return part.startswith("{") or any(character.isdigit() for character in part)


def _is_thing(word: str) -> bool:
    return bool({word, singular(word)} & _THINGS)
