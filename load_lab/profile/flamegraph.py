"""Parser of py-spy's flame graph, so that metrics and picture show the same samples.

A frame is a rectangle: its number of samples, where they start, and its depth.
"""

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from load_lab.errors import LabError

_SVG = "{http://www.w3.org/2000/svg}"
_INFERNO = "{http://github.com/jonhoo/inferno}"
# Format of py-spy: "View.get (bookings/apis.py:41) (12 samples, 3.40%)".
_TITLE = re.compile(r"(.+) \((?:[\d,]+) samples?, [\d.]+%\)")
_FUNCTION = re.compile(r"(.+) \(([^()]+?)(?::(\d+))?\)")
# Between two requests. py-spy leaves out the waiting of the standard library, but not this one.
_IDLE = re.compile(r"SyncWorker\.wait \(gunicorn/workers/sync\.py")
# Above the functions of each process.
_PROCESS = re.compile(r"process \d+:")


@dataclass(frozen=True)
class Frame:
    """A function at one place in the graph; `first` and `samples` are in samples."""

    function: str
    first: int
    samples: int
    depth: float

    def contains(self, other: "Frame") -> bool:
        inside = self.first <= other.first < self.first + self.samples
        return inside and other.depth > self.depth


@dataclass(frozen=True)
class HotFunction:
    """A function: samples in the function itself, and including its callees."""

    function: str
    where: str
    self_samples: int
    all_samples: int


def packages(functions: list[HotFunction]) -> Counter[str]:
    """Count the samples in the functions of each Python package, without callees.

    C code counts for the Python function that called it. A function without a file, such as a
    lambda in generated code, has the package "".
    """
    count: Counter[str] = Counter()
    for function in functions:
        count[_package(function.where)] += function.self_samples
    return count


def _package(where: str) -> str:
    """Return django for "django/dispatch/dispatcher.py:159", and stdlib for "uuid.py:233" and
    "<frozen importlib._bootstrap>:241".
    """
    name = where.partition(":")[0].partition("/")[0].removesuffix(".py")
    is_ours = name not in sys.stdlib_module_names and not name.startswith("<frozen ")
    return name if is_ours else "stdlib"


def hottest(svg: Path) -> tuple[int, int, list[HotFunction]]:
    """Return the number of samples, that of workers without a request, which is not in it, and all
    functions, by own samples in descending order.

    Raises:
        LabError: the picture can't be read.
    """
    # The root's frame contains all others; without any samples even the root is missing.
    frames = sorted(_frames(svg), key=lambda frame: (frame.first, frame.depth))
    root, frames = frames[:1], frames[1:]
    own, cumulative = _count_samples(frames)
    functions = [_hot_function(name, own[name], cumulative[name]) for name, _ in own.most_common()]
    idle = sum(frame.samples for frame in frames if _IDLE.match(frame.function))
    return sum(frame.samples for frame in root) - idle, idle, functions


def _frames(svg: Path) -> Iterator[Frame]:
    try:
        # py-spy wrote this file on this machine.
        tree = ElementTree.parse(svg)  # noqa: S314
    except ElementTree.ParseError as error:
        raise LabError(f"py-spy's picture can't be read: {error}. Record again.") from None
    for group in tree.iter(f"{_SVG}g"):
        title, box = group.find(f"{_SVG}title"), group.find(f"{_SVG}rect")
        match = _TITLE.fullmatch((title.text or "") if title is not None else "")
        if match and box is not None:
            first, width = int(box.get(f"{_INFERNO}x", 0)), int(box.get(f"{_INFERNO}w", 0))
            yield Frame(match[1], first, width, float(box.get("y", 0)))


def _count_samples(frames: list[Frame]) -> tuple[Counter[str], Counter[str]]:
    """Count the samples of each function: its own, and including its callees."""
    own: Counter[str] = Counter()
    cumulative: Counter[str] = Counter()
    for frame, callers in _with_callers(frames):
        own[frame.function] += frame.samples
        if callers:
            own[callers[-1].function] -= frame.samples
        # A recursive function counts once per sample.
        if frame.function not in {caller.function for caller in callers}:
            cumulative[frame.function] += frame.samples
        if _IDLE.match(frame.function):
            del own[frame.function], cumulative[frame.function]
            cumulative.subtract(dict.fromkeys((each.function for each in callers), frame.samples))
    return own, cumulative + _lost_by_callers(frames)


def _lost_by_callers(frames: list[Frame]) -> Counter[str]:
    """Return the samples that functions lost, since py-spy, which does not pause the server, found
    a generator that had yielded meanwhile: it has no caller then. They are those of the functions
    that call it in whole stacks, in the same proportions.
    """
    stacks = [
        (frame.function, frame.samples, callers)
        for frame, above in _with_callers([f for f in frames if not _PROCESS.match(f.function)])
        if frame.function not in (callers := [caller.function for caller in above])
    ]
    called = {function for function, _, callers in stacks if callers}
    whole: Counter[str] = Counter()
    by_caller: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for function, samples, callers in stacks:
        if callers and callers[0] not in called:
            whole[function] += samples
            by_caller[function].update(dict.fromkeys(callers, samples))
    lost: Counter[str] = Counter()
    for function, samples, callers in stacks:
        if not callers and function in whole:
            for caller, part in by_caller[function].items():
                lost[caller] += round(samples * part / whole[function])
    return lost


def _with_callers(frames: list[Frame]) -> Iterator[tuple[Frame, list[Frame]]]:
    """Yield each frame with its callers, the nearest last. Frames are sorted by place and depth."""
    stack: list[Frame] = []
    for frame in frames:
        while stack and not stack[-1].contains(frame):
            stack.pop()
        yield frame, list(stack)
        stack.append(frame)


def _hot_function(frame: str, own: int, cumulative: int) -> HotFunction:
    match = _FUNCTION.fullmatch(frame)
    if match is None:
        return HotFunction(frame, "", own, cumulative)
    where = f"{match[2]}:{match[3]}" if match[3] else match[2]
    return HotFunction(match[1], where, own, cumulative)
