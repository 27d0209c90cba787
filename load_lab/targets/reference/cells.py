"""What an experiment does with the hotel API around the load of a cell."""

from dataclasses import dataclass
from typing import Any

from load_lab.errors import LabError
from load_lab.settings import Settings, update_settings
from load_lab.stack import database, latency
from load_lab.stack.engine import Engine
from load_lab.stack.reference import LIST
from load_lab.stack.reported import Counters, query_backend, read_counters
from load_lab.targets.reference.verify import target_of, verify


@dataclass(frozen=True)
class HotelCell:
    """The running stack with the settings of one cell."""

    engine: Engine
    settings: Settings

    @property
    def _undelayed(self) -> Settings:
        # The verification runs without the delay, which would extend it to half a minute.
        return update_settings(self.settings, ["LAB_LATENCY_MS=0"])

    def reset(self, *, restore: bool) -> None:
        """Start with empty caches, and with load_db's data if a load has written."""
        with self.engine.empty_caches(self._undelayed):
            if restore:
                database.restore(self.engine)

    def verify(self) -> dict[str, Any]:
        """Verify the layers, and leave the caches empty; return the delays in ms."""
        verify(target_of(self.engine, self._undelayed))
        # Not only for the caches: workers still have the pages of the verification in memory.
        with self.engine.empty_caches(self.settings):
            pass
        return latency.verify(self.settings, self.engine.token())

    def visit_pages(self) -> None:
        target = target_of(self.engine, self.settings)
        for path in (LIST, *target.pages()):
            target.get(self.settings.target_url, path)

    def counters(self) -> Counters:
        return read_counters(self.settings)

    def counts_since(self, before: Counters) -> Counters:
        """Return what was counted since.

        Raises:
            LabError: the backend was restarted.
        """
        counts = self.counters().since(before)
        if counts.total_builds < 0:
            raise LabError("The backend was restarted during the load: its counters began anew.")
        return counts


def describe(engine: Engine, settings: Settings) -> dict[str, Any]:
    """Return the data, versions and authentication that an experiment's result says.

    Raises:
        LabError: the backend runs with DEBUG.
    """
    status = query_backend(settings, engine.token())
    if status["debug"]:
        raise LabError("The backend runs with DEBUG on, so results would be void. Unset DEBUG.")
    return {
        "data": {n: v for n, v in settings.as_env().items() if n.startswith("LAB_DATA_")},
        "versions": engine.versions() | status["versions"],
        "postgres_auth": latency.postgres_auth(settings, engine.token()),
    }
