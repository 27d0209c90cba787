"""The file with the settings of a running stack, which the lab writes and the backend reads."""

from collections.abc import Mapping
from pathlib import Path


def write_settings(path: Path, values: Mapping[str, str]) -> None:
    """Write the settings atomically: a server may read them at any time."""
    scratch = path.with_suffix(".new")
    scratch.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
    scratch.replace(path)


def read_settings(path: Path) -> dict[str, str]:
    """Return the settings in the file.

    Raises:
        FileNotFoundError: there is none.
    """
    return dict(line.split("=", 1) for line in path.read_text().splitlines())
