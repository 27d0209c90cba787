"""What answers say of the credentials: a login that is asked for, a session that has ended."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import httpx

from load_lab.console import note
from load_lab.errors import LabError, UsageError
from load_lab.targets.mix import LeftOut
from load_lab.targets.sources.described import ApiOperation
from load_lab.targets.sources.exchange import Exchange, send

# Statuses of an answer to somebody whom the target does not know, besides redirects.
_REFUSALS = frozenset({401, 403})
# So few equal answers may be chance.
_FEWEST_EQUAL = 3

# Returns the headers of a new session.
Renew = Callable[[], Mapping[str, str]]


class Session:
    """Knows a page that is answered only within the session, and requests it after others.

    `client` sends the target's credentials, `stranger` none; `renew` is None if they are constant.
    """

    def __init__(
        self, client: httpx.Client, stranger: httpx.Client, renew: Renew | None = None
    ) -> None:
        self._client, self._stranger, self._renew = client, stranger, renew
        self._page: ApiOperation | None = None

    def find_page(self, operations: Iterable[ApiOperation]) -> dict[ApiOperation, str]:
        """Find the page among these operations. Return those that ended the session, and why, see
        `check`.
        """
        ended: dict[ApiOperation, str] = {}
        refused = ""
        for operation in self._candidates(operations):
            self._page = operation
            answer = self._answer(operation)
            if answer.problem:
                refused = f"{operation.name} {answer.problem}"
                if self._renew and not _is_login(answer):
                    # It may have been the logout.
                    self._client.headers.update(self._renew())
            elif reason := self.check(operation):
                ended[operation] = reason
            else:
                return ended
        self._page = None
        if refused:
            note(
                f"With the credentials of the target's file, {refused}. No other page needs a "
                "login. If the mix lacks the pages behind it, make the credentials anew."
            )
        return ended

    def _candidates(self, operations: Iterable[ApiOperation]) -> Iterator[ApiOperation]:
        """Yield the operations that refuse a stranger, those that ask for a login first."""
        later = []
        for each in operations:
            if not (each.path or each.query):
                answer = send(self._stranger, each.method, each.template)
                if _is_login(answer):
                    yield each
                elif _is_refused(answer):
                    later.append(each)
        yield from later

    def check(self, operation: ApiOperation) -> str:
        """Return why an operation that was just sent is left out: it ended the session, which this
        makes again; "" if it did not.

        Raises:
            LabError: the session can't be made again.
        """
        page = self._page
        if page is None or not _is_refused(answer := self._answer(page)):
            return ""
        if self._renew is None:
            raise LabError(
                f"{operation.name} ended the session: {page.name} then {answer.problem}. Make a "
                f"new one, and leave the operation out: --leave-out '{operation.name}', or "
                "leave_out in the target's file."
            )
        self._client.headers.update(self._renew())
        if page != operation and _is_refused(again := self._answer(page)):
            raise LabError(
                f"{operation.name} ended the session, and the command of [auth] made none: "
                f"{page.name} {again.problem}."
            )
        return f"not safe: it ended the session ({page.name} then {answer.problem})"

    def _answer(self, page: ApiOperation) -> Exchange:
        return send(self._client, page.method, page.template)


def _is_refused(exchange: Exchange) -> bool:
    """Return whether an answer is a redirect, as to a login, or a refusal."""
    status = exchange.status or 0
    return bool(exchange.problem) and (300 <= status < 400 or status in _REFUSALS)


def _is_login(exchange: Exchange) -> bool:
    """Return whether an answer asks for a login: a redirect to one says where to go afterwards. A
    logout redirects, too.
    """
    return _is_refused(exchange) and (exchange.status in _REFUSALS or "?" in exchange.problem)


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
    if not left_out:
        raise LabError(f"Nothing that {client.base_url} is said to have can be sent.")
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
