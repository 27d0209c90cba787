"""Settings that `lab set` changes while a load runs."""

import time
from contextlib import suppress
from dataclasses import dataclass, field

from load_lab.errors import LabError
from load_lab.settings import Settings
from load_lab.stack.engine import Engine


@dataclass(frozen=True)
class SettingChange:
    """A setting that was changed at a moment (Unix time)."""

    at: float
    name: str
    before: str
    after: str


@dataclass
class SettingWatch:
    """Called every second of a load; `changes` are those since it was made."""

    engine: Engine
    settings: Settings
    changes: list[SettingChange] = field(default_factory=list, init=False)

    def __call__(self) -> None:
        now = None
        # A stack of another version tells nothing of this one.
        with suppress(LabError):
            now = self.engine.settings()
        if now is None or now == self.settings:
            return
        before, after = self.settings.as_env(), now.as_env()
        self.changes += [
            SettingChange(time.time(), name, before.get(name, ""), after[name])
            for name in after
            if after[name] != before.get(name)
        ]
        self.settings = now
