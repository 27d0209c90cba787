"""Find the moment from which a load's pages are others than those of its mix. Pure.

A site whose session expired, or that fails, may answer each request with one page and status 200. A
page's length alone says little: lists grow, and some pages differ each time. So an unusual length
counts if all samples of an operation since then have it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from load_lab.errors import LabError
from load_lab.targets.mix import Page

# Samples that show a login form, or one other length.
_FEW_LOGINS, _FEW_LENGTHS = 3, 5
# By this factor a length is beyond all that were seen, and up to this one lengths are alike.
_BEYOND, _ALIKE = 1.5, 1.2
_NAMED = 3


@dataclass(frozen=True)
class PageSample:
    """One page: seconds into the load, its operation, its length in characters."""

    at: float
    name: str
    length: int
    has_login: bool


@dataclass(frozen=True)
class PageChange:
    """The pages of `operations` are others than before, from `after` seconds into the load on.
    `lengths` are those of the `samples` that show it, `before` those of the first operation.
    """

    after: float
    operations: tuple[str, ...]
    samples: int
    has_login: bool
    lengths: tuple[int, int]
    before: tuple[int, int]

    @property
    def text(self) -> str:
        first, *others = self.operations
        what = "have a login form, unlike when the mix was made" if self.has_login else "are others"
        rest = f", {', '.join(others[: _NAMED - 1])}" if others else ""
        more = len(self.operations) - _NAMED
        return (
            f"from {self.after:.0f} s on, pages {what}: {first} has {_range(self.lengths)} "
            f"characters instead of {_range(self.before)}{rest}"
            f"{f' and {more} more' if more > 0 else ''} ({self.samples} pages sampled since)"
        )


def _range(lengths: tuple[int, int]) -> str:
    low, high = lengths
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


@dataclass
class _Operation:
    """What is known of an operation: the lengths that are usual, and the samples since the last
    usual one. `is_usual`: this load had a usual one.
    """

    page: Page
    least: int = 0
    most: int = 0
    has_login: bool = False
    last: int | None = None
    is_usual: bool = False
    run: list[PageSample] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.least, self.most = self.page.least, self.page.most
        self.has_login = self.page.has_login

    def add(self, sample: PageSample) -> None:
        self.last = sample.length
        if sample.has_login and not self.has_login:
            # A login page may have any length.
            self.run = [*(self.run if self.shows_login else []), sample]
        elif self._is_beyond(sample.length) and not self.shows_login:
            self.run.append(sample)
            if not _are_alike(each.length for each in self.run):
                self._accept()
        else:
            self._accept()
            self._widen(sample.length)
            self.is_usual = True

    def _is_beyond(self, length: int) -> bool:
        return length * _BEYOND < self.least or length > self.most * _BEYOND

    def _accept(self) -> None:
        """Take the samples for usual ones: pages of this operation vary."""
        for each in self.run:
            self._widen(each.length)
            self.has_login |= each.has_login
        self.run = []

    def _widen(self, length: int) -> None:
        self.least, self.most = min(self.least, length), max(self.most, length)

    @property
    def shows_login(self) -> bool:
        return bool(self.run) and not self.has_login and all(each.has_login for each in self.run)


class SampledPages:
    """The pages of a load, of which each sample is looked at once; `pages` is what the mix says of
    each operation.
    """

    def __init__(self, pages: Mapping[str, Page]) -> None:
        self._operations = {name: _Operation(page) for name, page in pages.items()}

    def add(self, samples: Iterable[PageSample]) -> PageChange | None:
        """Add samples in the order of their times. Return what shows that pages changed; None if
        nothing does.
        """
        for sample in samples:
            if sample.name in self._operations:
                self._operations[sample.name].add(sample)
        unusual = [each for each in self._operations.values() if each.run]
        logins = [each for each in unusual if each.shows_login]
        if _count(logins) >= _FEW_LOGINS:
            return _change(logins, has_login=True)
        for base in unusual:
            group = [each for each in unusual if _are_alike(_lengths([base, each]))]
            if _count(group) >= _FEW_LENGTHS and _is_new(group, self._operations.values()):
                return _change(group, has_login=False)
        return None


def _is_new(group: Sequence[_Operation], operations: Iterable[_Operation]) -> bool:
    """Return whether the group's pages changed during this load, or are one page now that were
    several: a list may have grown since the mix was made.
    """
    if any(each.is_usual for each in group):
        return True
    lengths = _lengths(group)
    alike = [
        each for each in operations if each.last is not None and _are_alike([*lengths, each.last])
    ]
    least, most = min(each.page.most for each in alike), max(each.page.least for each in alike)
    return most > least * _BEYOND


def _change(group: Sequence[_Operation], *, has_login: bool) -> PageChange:
    ordered = sorted(group, key=lambda each: each.run[0].at)
    first, lengths = ordered[0], _lengths(ordered)
    return PageChange(
        after=round(first.run[0].at, 1),
        operations=tuple(each.run[0].name for each in ordered),
        samples=_count(ordered),
        has_login=has_login,
        lengths=(min(lengths), max(lengths)),
        before=(first.least, first.most),
    )


def require_same_pages(testid: str, change: PageChange | None) -> None:
    """Check that a load's pages did not change: its other values are of two kinds of pages.

    Raises:
        LabError: they did.
    """
    if change:
        raise LabError(f"{testid} did not measure what the mix says: {change.text}.")


def _count(operations: Iterable[_Operation]) -> int:
    return sum(len(each.run) for each in operations)


def _lengths(operations: Iterable[_Operation]) -> list[int]:
    return [sample.length for each in operations for sample in each.run]


def _are_alike(lengths: Iterable[int]) -> bool:
    known = list(lengths)
    return max(known) <= _ALIKE * min(known)
