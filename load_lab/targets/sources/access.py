"""What the answers of an exploration say of its credentials."""

from collections import Counter
from collections.abc import Iterable, Sequence

import httpx

from load_lab.errors import LabError, UsageError
from load_lab.targets.mix import LeftOut
from load_lab.targets.sources.exchange import Exchange

_REFUSALS = frozenset({401, 403})
# So few equal answers may be chance.
_FEWEST_EQUAL = 3


def login_instead(answers: Iterable[Exchange]) -> str:
    """Return a sentence if most of the answers, one of each operation, redirect to one path or are
    one page; "" if not. Equal JSON is fine: lists may be empty.
    """
    known = list(answers)
    paths = [each.location.partition("?")[0] for each in known if each.problem and each.location]
    pages = [each.body for each in known if each.body.strip() and each.is_page]
    for values, text in ((paths, "redirect to {}"), (pages, "are the same page")):
        value, count = Counter(values).most_common(1)[0] if values else ("", 0)
        if count >= _FEWEST_EQUAL and count * 2 > len(known):
            return f"{count} of {len(known)} answers {text.format(value)}: it asks for a login."
    return ""


def require_success(
    left_out: Sequence[LeftOut], client: httpx.Client, credentials: Sequence[str]
) -> None:
    """Raise the error of an exploration that has nothing but operations that are left out.

    `credentials`: headers that the target or its document names ("Authorization: Token …").

    Raises:
        UsageError: every answer was 401 or 403.
        LabError: always, if it was something else.
    """
    answered = [each for each in left_out if each.status is not None]
    if answered and all(each.status in _REFUSALS for each in answered):
        raise UsageError(
            f"{client.base_url} answered 401 or 403 to each of {len(answered)} operations, such as "
            f"{answered[0].name}. {_advice(client, credentials)}"
        )
    statuses = Counter(each.status or "not sent or no answer" for each in left_out)
    summary = ", ".join(f"{status}: {count}" for status, count in statuses.most_common())
    example = (answered or left_out)[0]
    raise LabError(
        f"{client.base_url} answered no operation with 2xx ({summary}), such as {example.name}: "
        f"{example.reason}. Check that the document belongs to this target."
    )


def _advice(client: httpx.Client, credentials: Sequence[str]) -> str:
    headers = list(dict.fromkeys(credentials)) or ["Authorization: …"]
    if sent := [header for header in headers if header.partition(":")[0] in client.headers]:
        return f"It was sent `{sent[0]}`: check that its value is valid and may read."
    return f"Add the header that authenticates to the target's headers: {' or '.join(headers)}"
