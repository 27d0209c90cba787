"""The services of a target as pictures name and colour them."""

import re

from lab.charts.style import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILLION

OTHERS = "others"
COLOURS = {
    "backend": BLUE,
    "backend-beside": SKY,
    "backend-worker": "#882255",
    "legacy-web": PURPLE,
    "legacy-workers": "#44aa99",
    "legacy-redis": "#999933",
    "postgres": ORANGE,
    "nginx": GREEN,
    "redis": VERMILLION,
    "toxiproxy": "#661100",
    OTHERS: GREY,
}
# Exporters and the like: in no cell as much as this, and a colour each would hide what matters.
_LITTLE_CORES = 0.05
_WORKER = re.compile(r"legacy-worker-\d+")


def merged(cells: list[dict[str, float]]) -> list[dict[str, float]]:
    """Cores by service of each cell; workers of one kind, and what is next to idle, as one each."""
    summed = [_sums({name: _plural(name) for name in cell}, cell) for cell in cells]
    names = {name for cell in summed for name in cell}
    busy = {n for n in names if max(cell.get(n, 0) for cell in summed) >= _LITTLE_CORES}
    kept = {name: name if name in busy else OTHERS for name in names}
    return [_sums(kept, cell) for cell in summed]


def _plural(name: str) -> str:
    return "legacy-workers" if _WORKER.fullmatch(name) else name


def _sums(renamed: dict[str, str], cell: dict[str, float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, cores in cell.items():
        found[renamed[name]] = found.get(renamed[name], 0) + cores
    return found
