"""SECURITY.md's table of ports."""

import re
from dataclasses import dataclass

from load_lab.paths import ROOT

PAGE = (ROOT / "SECURITY.md").read_text()


@dataclass(frozen=True)
class Row:
    """A listening port, by its setting. `address` is loopback or LAB_BIND."""

    setting: str
    default: str
    address: str
    engines: tuple[str, ...]
    when: str


def rows() -> list[Row]:
    """Return the rows of the table."""
    table = []
    for line in PAGE.splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip("|").split(" | ")]
        if re.fullmatch(r"LAB_\w+_PORT", cells[0]):
            setting, default, _, address, engine, when, _ = cells
            engines = ("docker", "native") if engine == "both" else (engine,)
            table.append(Row(setting, default, address, engines, when))
    return table
