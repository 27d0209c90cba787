"""Look at the sampled pages of a load while it runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from time import time

from load_lab.errors import LabError
from load_lab.load.page_change import PageChange, PageSample, SampledPages
from load_lab.metrics import queries
from load_lab.metrics.counters import Labels
from load_lab.metrics.prometheus import KnownSamples, Prometheus
from load_lab.targets.mix import Page, read_mix

# Prometheus may hang, and the load is looked at every second.
_TIMEOUT_SECONDS = 3
# As in k6/lib/operation.js.
_NAME_LENGTH = 120


def pages_of(env: Mapping[str, str]) -> dict[str, Page]:
    """Return the pages of the mix in k6's environment, by the label of their operation."""
    path = env.get("MIX")
    if not path or env.get("SCENARIO") != "replay":
        return {}
    mix = read_mix(Path(path))
    return {each.name[:_NAME_LENGTH]: each.page for each in mix.operations if each.page}


@dataclass
class PageWatch:
    """Called every second of the load `testid`; returns true once its pages have changed."""

    testid: str
    prometheus_url: str
    pages: Mapping[str, Page]
    change: PageChange | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._prometheus = Prometheus(self.prometheus_url, _TIMEOUT_SECONDS)
        self._known = KnownSamples(self._prometheus)
        self._sampled = SampledPages(self.pages)
        self._started: float | None = None
        # Of each series, the time of the last sample that was looked at.
        self._until: dict[Labels, float] = {}

    def __call__(self) -> bool:
        if self.pages and self.change is None:
            try:
                self.change = self._sampled.add(self._new_samples())
            except LabError:
                # Prometheus may answer again in a second.
                return False
        return self.change is not None

    def _new_samples(self) -> list[PageSample]:
        runs = queries.one_run(self.testid)
        self._started = self._started or self._prometheus.instant(queries.start(runs))
        if self._started is None:
            return []
        series = self._known.samples(queries.page_lengths(runs), self._started, time())
        samples = []
        for labels, values in series.items():
            label, until = dict(labels), self._until.get(labels, 0.0)
            new = list(takewhile(until.__lt__, reversed(values)))
            self._until[labels] = max(new, default=until)
            samples += [
                PageSample(
                    at - self._started, label["name"], round(values[at]), label["login"] == "yes"
                )
                for at in new
            ]
        return sorted(samples, key=lambda each: each.at)
