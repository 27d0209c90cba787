"""Errors of an exploration in which no operation was answered with 2xx."""

from collections import Counter
from collections.abc import Sequence

import httpx

from load_lab.errors import LabError, UsageError
from load_lab.targets.mix import LeftOut

_REFUSALS = frozenset({401, 403})


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
