"""Named sets of settings: presets/*.env, which docker compose can also read."""

from load_lab.errors import UsageError
from load_lab.paths import PRESETS
from load_lab.settings.env_file import read_env_file


def preset_assignments(name: str) -> list[str]:
    """Return the preset as NAME=VALUE.

    Raises:
        UsageError: there is no preset of that name, or its file can't be read.
    """
    presets = sorted(path.stem for path in PRESETS.glob("*.env"))
    if name not in presets:
        raise UsageError(f"There is no preset {name}. Known: {', '.join(presets)} (in presets/).")
    values = read_env_file(PRESETS / f"{name}.env")
    return [f"{key}={value}" for key, value in values.items()]
