"""The requests of a log or HAR file, as far as this target answers them: it may be another one than
that of the record.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import httpx

from load_lab.errors import LabError
from load_lab.targets.mix import SAFE_METHODS, Arrival, LeftOut, Mix, Operation
from load_lab.targets.seen_pages import together
from load_lab.targets.sources.exchange import Exchange, Tries, send


@dataclass(frozen=True)
class Answered:
    """The mix of the addresses that were answered with 2xx, and what is to be told of the others:
    a line for each operation that lost some.
    """

    mix: Mix
    lost: tuple[str, ...]


def keep_answered(mix: Mix, client: httpx.Client) -> Answered:
    """Send each address once, and keep those that are answered with 2xx. Requests that write stay.

    Raises:
        LabError: the target accepts no connection, or answers none of them with 2xx.
    """
    found = [_Found(each, client) for each in mix.operations]
    kept = [each for each in found if each.kept]
    if not kept:
        first = found[0]
        raise LabError(
            f"{client.base_url} answered none of {len(found)} operations with 2xx, such as "
            f"{first.operation.name}: {first.failure.problem}. Is it the target of this record? If "
            "that target is not here: --untried"
        )
    left_out = (
        LeftOut(name=each.operation.name, status=each.failure.status, reason=each.failure.problem)
        for each in found
        if not each.kept
    )
    arrivals = tuple(_arrivals(mix.arrivals, found))
    lost = [
        f"{each.operation.name}: {len(each.operation.requests) - len(each.kept)} of "
        f"{len(each.operation.requests)} addresses are left out: {each.failure.problem}"
        for each in kept
        if len(each.kept) < len(each.operation.requests)
    ]
    if count := len(mix.arrivals) - len(arrivals):
        lost.append(f"{count} of {len(mix.arrivals)} arrivals are left out with their addresses")
    operations = tuple(each.operation_for_mix() for each in kept)
    update = {"operations": operations, "left_out": (*mix.left_out, *left_out)}
    return Answered(mix.model_copy(update=update | {"arrivals": arrivals}), tuple(lost))


class _Found:
    """An operation, and the answers to its addresses; none if it writes."""

    def __init__(self, operation: Operation, client: httpx.Client) -> None:
        self.operation, self._client = operation, client
        self._answers: dict[str, Exchange] = {}
        # The first answer that is no 2xx. Its address may be a secret.
        self.failure = Exchange()
        if operation.method in SAFE_METHODS:
            paths = dict.fromkeys(each.path for each in operation.requests)
            Tries[str]().run(self._send, paths, enough=len(paths), most_failures=len(paths))
        is_read = operation.method in SAFE_METHODS
        requests = enumerate(operation.requests)
        kept = [i for i, each in requests if not is_read or each.path in self._answers]
        # The new positions of the addresses that stay, by the old ones.
        self.kept = {old: new for new, old in enumerate(kept)}

    def _send(self, path: str) -> Exchange:
        exchange = send(self._client, self.operation.method, path, headers=self.operation.headers)
        if not exchange.problem:
            self._answers[path] = replace(exchange, body=b"")
        elif not self.failure.problem:
            self.failure = replace(exchange, body=b"")
        return exchange

    def operation_for_mix(self) -> Operation:
        """Return the operation with what stays, and the status that this target answers with."""
        operation = self.operation
        share = len(self.kept) / len(operation.requests)
        requests = tuple(operation.requests[i] for i in self.kept)
        answers = [self._answers.get(each.path, Exchange()) for each in requests]
        expect = Counter(each.status for each in answers).most_common(1)[0][0] or operation.expect
        page = together(each.page for each in answers)
        update = {"requests": requests, "weight": operation.weight * share, "expect": expect}
        return operation.model_copy(update=update | {"page": page})


def _arrivals(arrivals: Sequence[Arrival], found: Sequence[_Found]) -> Iterator[Arrival]:
    """Yield the arrivals whose addresses stay, with their new places."""
    kept = [i for i, each in enumerate(found) if each.kept]
    places = {old: new for new, old in enumerate(kept)}
    for each in arrivals:
        request = found[each.operation].kept.get(each.request)
        if request is not None:
            update = {"operation": places[each.operation], "request": request}
            yield each.model_copy(update=update)
