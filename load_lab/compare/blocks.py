"""The blocks of a comparison, and what they say together."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from load_lab.compare.cost import Side
from load_lab.compare.ratios import Verdict, is_clear, is_look, is_more, judge
from load_lab.results.ratio import Pair, Ratio, ratio_of_pairs
from load_lab.targets.subject import Variant

# Where the CPU is less than this share of the response time, the response time is judged as well.
_CPU_SHARE = 0.5
# Of the requests: by so many more, failed or late ones make B slower.
_LEAST_MORE = {"failed": 0.005, "late": 0.01}


@dataclass(frozen=True)
class CompareOptions:
    """What to compare, by which requests; how long at most, in seconds; from which difference on B
    is slower, as a share; from which response time on a request is late; the least length of a
    block; whether each one's capacity is searched, too, after the budget; and whether the variants
    may answer differently.
    """

    a: Variant
    b: Variant
    scenario: str | None
    budget: float
    threshold: float
    limit_ms: int = 1000
    block_seconds: int = 20
    with_capacity: bool = False
    may_differ: bool = False

    @property
    def is_control(self) -> bool:
        """Return whether both are the same: then the machine is compared with itself."""
        return self.a.same_as(self.b)


@dataclass(frozen=True)
class Block:
    """A restart of both; `swapped` if B was in the first stack, `control` if A was in both."""

    number: int
    a: Side
    b: Side
    swapped: bool
    control: bool


def counted(sides: Sequence[Collection[str]]) -> set[str]:
    """Return the services that each side has."""
    return set.intersection(*map(set, sides)) if sides else set()


@dataclass
class Session:
    """A comparison so far."""

    options: CompareOptions
    blocks: list[Block] = field(default_factory=list)

    def add(self, block: Block) -> None:
        """Add a block. A service counts in all blocks of both, or in none."""
        blocks = [*self.blocks, block]
        names = counted([side.services for each in blocks for side in (each.a, each.b)])
        self.blocks = [
            replace(each, a=each.a.counting(names), b=each.b.counting(names)) for each in blocks
        ]

    @property
    def services(self) -> tuple[list[str], list[str]]:
        """Return the services that count, and those that were seen only in some blocks."""
        sides = [side.services for block in self.blocks for side in (block.a, block.b)]
        names = counted(sides)
        return sorted(names), sorted({name for side in sides for name in side} - names)

    @property
    def compared(self) -> list[Block]:
        """Return the blocks that are no control."""
        return [block for block in self.blocks if not block.control]

    def pairs(self, metric: str, *, control: bool = False) -> list[Pair]:
        return [
            Pair(getattr(block.a, metric) or 0, getattr(block.b, metric) or 0, block.swapped)
            for block in self.blocks
            if block.control == control
        ]

    def ratio(self, metric: str) -> Ratio | None:
        return ratio_of_pairs(self.pairs(metric))

    @property
    def judged(self) -> list[str]:
        """Return the metrics that decide: CPU per request; and the median response time, if most
        of it is spent elsewhere.
        """
        sides = [side for block in self.blocks for side in (block.a, block.b)]
        elsewhere = [side for side in sides if side.cpu_ms < _CPU_SHARE * side.p50_ms]
        return ["cpu_ms", "p50_ms"] if len(elsewhere) > len(sides) / 2 else ["cpu_ms"]

    @property
    def verdict(self) -> Verdict:
        """Return the worst of the verdicts: slower in one is slower."""
        if self.more_in_b:
            return "slower"
        verdicts = [judge(self.ratio(name), self.options.threshold) for name in self.judged]
        order: tuple[Verdict, ...] = ("slower", "can't tell", "faster", "not slower")
        return next(verdict for verdict in order if verdict in verdicts)

    @property
    def more_in_b(self) -> str | None:
        """Return of which requests B has more than A: failed or late ones; None if of neither."""
        shares = {name: self._shares(name) for name in _LEAST_MORE}
        return next(
            (name for name, least in _LEAST_MORE.items() if is_more(shares[name], least)), None
        )

    def _shares(self, name: str) -> list[tuple[float, float]]:
        return [
            (
                getattr(block.a, name) / block.a.requests,
                getattr(block.b, name) / block.b.requests,
            )
            for block in self.compared
        ]

    @property
    def is_clear(self) -> bool:
        """Return whether the comparison may stop before its budget ends."""
        if self.more_in_b:
            return is_look(len(self.compared))
        threshold = self.options.threshold
        return all(is_clear(self.pairs(name), threshold) for name in self.judged)
