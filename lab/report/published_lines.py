"""What a source published, line by line, beside the cells that correspond to it."""

from collections.abc import Callable
from dataclasses import dataclass

from lab.analysis.formatting import percent, rate, whole
from lab.report.figures import milliseconds
from lab.report.model import Cell, Document, Report


@dataclass(frozen=True)
class Kind:
    """A figure that sources publish: its column's title, and how it is written."""

    name: str
    title: str
    short: str
    form: Callable[[float | None], str]


KINDS = (
    Kind("max_rps", "successes/s at most", "successes/s at most", rate),
    Kind("successes", "successes", "successes", whole),
    Kind("answers_per_second", "answers/s", "answers/s", rate),
    Kind("rps", "requests/s", "requests/s", rate),
    Kind("p50_ms", "p50, ms", "p50", milliseconds),
    Kind("p90_ms", "p90, ms", "p90", milliseconds),
    Kind("p95_ms", "p95, ms", "p95", milliseconds),
    Kind("p99_ms", "p99, ms", "p99", milliseconds),
    Kind("failed_ratio", "failed, %", "failed", percent),
)


@dataclass(frozen=True)
class Group:
    """Published lines that have the same figures. `main` is the one whose steps are compared."""

    kinds: tuple[Kind, ...]
    main: Kind
    lines: list["Line"]


@dataclass
class Line:
    """A published cell beside the measured one; `base` is the line that steps begin at."""

    label: str
    published: Document
    cell: Cell | None
    base: "Line | None" = None

    def theirs(self, kind: Kind) -> float | None:
        value = self.published.get(kind.name)
        return None if value is None else float(value)

    def ours(self, kind: Kind) -> float | None:
        return self.cell.median(kind.name) if self.cell else None

    def step(self, kind: Kind, whose: str) -> float | None:
        """How many times the base's figure; `whose` is `theirs` or `ours`."""
        own = getattr(self, whose)(kind)
        first = getattr(self.base, whose)(kind) if self.base else None
        return own / first if own is not None and first else None


def groups(report: Report) -> list[Group]:
    """The published lines, those with the same figures together."""
    found: dict[tuple[Kind, ...], list[Line]] = {}
    for figure in report.header.get("published", []):
        kinds = tuple(kind for kind in KINDS if figure.get(kind.name) is not None)
        line = Line(figure.get("label") or figure["cell"], figure, report.cell(figure["cell"]))
        found.setdefault(kinds, []).append(line)
    for lines in found.values():
        _find_bases(report, lines)
    return [Group(kinds, _main(report, kinds, lines), lines) for kinds, lines in found.items()]


def _find_bases(report: Report, lines: list[Line]) -> None:
    """The cell that the file names, for this line or for all; where it names none, the first."""
    by_cell = {line.cell.name: line for line in lines if line.cell}
    named = bool((report.header.get("report") or {}).get("base"))
    for line in lines:
        own = line.published.get("base")
        base = report.base_of(line.cell) if line.cell and named else None
        name = own or (base.name if base else None)
        line.base = by_cell.get(name or "") if own or named else lines[0]


def _main(report: Report, kinds: tuple[Kind, ...], lines: list[Line]) -> Kind:
    """What the experiment compares by, if the source has it; else requests/s, else the first."""
    compared = [report.figure(report.place(line.cell)[2]).name for line in lines if line.cell]
    wanted = [*compared[:1], "rps"]
    return next((kind for name in wanted for kind in kinds if kind.name == name), kinds[0])
