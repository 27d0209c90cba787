"""Named sets of settings: presets/*.env, which docker compose can also read."""

from dotenv import dotenv_values

from lab.errors import UsageError
from lab.paths import PRESETS


def preset_assignments(name: str) -> list[str]:
    """Return the preset as NAME=VALUE.

    Raises:
        UsageError: there is no preset of that name.
    """
    presets = sorted(path.stem for path in PRESETS.glob("*.env"))
    if name not in presets:
        raise UsageError(f"There is no preset {name}. Known: {', '.join(presets)} (in presets/).")
    values = dotenv_values(PRESETS / f"{name}.env", interpolate=False)
    return [f"{key}={value or ''}" for key, value in values.items()]
