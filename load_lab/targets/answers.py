"""What a target answers to each operation of its mix, and whether another instance differs."""

from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from load_lab.stack import http
from load_lab.targets.declared import DeclaredTarget
from load_lab.targets.mix import SAFE_METHODS, read_mix

# Pages of equal code differ in times, tokens and numbers.
_MOST_SIZE_CHANGE = 0.1
# Of which a few characters are a large share.
_LEAST_SIZE_CHANGE = 20


@dataclass(frozen=True)
class Answer:
    """Status and size in bytes, without the server's own address; status 0: none."""

    status: int
    size: int

    def differs_from(self, other: "Answer") -> bool:
        change = abs(self.size - other.size)
        allowed = max(_MOST_SIZE_CHANGE * max(self.size, other.size), _LEAST_SIZE_CHANGE)
        return self.status != other.status or change > allowed

    def __str__(self) -> str:
        return f"{self.status} and {self.size:,} bytes" if self.status else "nothing"


def find_answers(target: DeclaredTarget) -> dict[str, Answer]:
    """Request each operation of the mix that does not write, once."""
    operations = read_mix(target.mix_path).operations
    reading = [each for each in operations if each.method in SAFE_METHODS]
    return {
        each.name: _answer(target, each.method, each.requests[0].path, each.headers)
        for each in reading
        if not each.created_by
    }


def _answer(target: DeclaredTarget, method: str, path: str, headers: Mapping[str, str]) -> Answer:
    sent = {**headers, **target.credentials.headers}
    try:
        with http.client(target.url, sent, timeout=target.file.ready_seconds) as client:
            response = client.request(method, path)
    except httpx.HTTPError:
        return Answer(0, 0)
    own = httpx.URL(target.url).netloc
    return Answer(response.status_code, len(response.content.replace(own, b"")))


def differences(a: Mapping[str, Answer], b: Mapping[str, Answer]) -> list[str]:
    """Return the operations that are answered differently, and how."""
    return [
        f"{name}: A answers {answer}, B {b[name]}"
        for name, answer in a.items()
        if name in b and answer.differs_from(b[name])
    ]
