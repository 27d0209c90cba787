"""The hotel API as what a command measures: variants of it are settings, presets and commits."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from lab_settings.declaration import is_fixed

from load_lab.errors import UsageError
from load_lab.settings import Settings, load_settings, require_same, update_live_settings
from load_lab.stack import database
from load_lab.stack.engine import (
    Engine,
    require_processes,
    require_reference_app,
    settings_of,
)
from load_lab.stack.exclusive import exclusive_use, prepare
from load_lab.stack.locks import measurement_lock
from load_lab.targets.change import Change
from load_lab.targets.reference.app import Entry, reported_facts
from load_lab.targets.reference.changes import reference_changes
from load_lab.targets.reference.growth import MEMORY_LIMITS, growth_of
from load_lab.targets.reference.two_stacks import running_stack, two_stacks
from load_lab.targets.reference.variants import find_variant, require_comparable, settings_with
from load_lab.targets.subject import AS_IS, Growth, Instance, Running, Variant


@dataclass
class ReferenceSubject:
    """See `Subject`. `writes`: its loads change the data, so it gets load_db's before each, and
    afterwards. `base` are the settings without a variant, by default the running stack's.
    """

    engine: Engine
    scenario: str
    writes: bool = False
    entry: Entry = "nginx"
    base: Settings | None = None
    name = "hotel"
    memory_limits: ClassVar[Mapping[str, int]] = MEMORY_LIMITS

    @property
    def settings(self) -> Settings:
        return self.base or settings_of(self.engine)

    @property
    def why_in_turns(self) -> str:
        if self.engine.has_processes:
            return ""
        return f"two stacks at once need the native engine; this one is {self.engine.name}"

    @property
    def concurrency(self) -> int | None:
        """See `Subject`: threads, or connections that they share."""
        settings = self.settings
        pool = (settings.pool_size or 0) * settings.LAB_WORKERS
        return max(settings.worker_slots or 0, pool) or None

    @property
    def shedding(self) -> Sequence[Variant]:
        return [find_variant(f"LAB_SHED={mode}") for mode in ("on", "off")]

    @property
    def growth(self) -> Growth:
        require_processes(self.engine, "soak", "looks into folders and processes")
        return growth_of(self.engine, lambda: self.settings)

    def facts(self) -> dict[str, Any]:
        return reported_facts(self.engine, self.settings)

    def variant(self, text: str) -> Variant:
        return find_variant(text)

    def changes(self, route: str | None = None) -> dict[str, Change]:
        return reference_changes(self.settings, self.scenario, route)

    def how_to_change(self, cause: str) -> str:
        return ""

    @contextmanager
    def used(self) -> Iterator[None]:
        with exclusive_use(self.engine, keep_settings=True) as stack:
            self.base = self.base or stack.base
            if self.writes:
                prepare(self.engine, stack)
            yield

    @contextmanager
    def running(self, variant: Variant = AS_IS) -> Iterator[Running]:
        with self.engine.empty_caches(settings_with(self.settings, variant)):
            if self.writes:
                database.restore(self.engine)
        yield running_stack(self.engine, self.settings, self.entry)

    @contextmanager
    def instances(
        self, variants: Sequence[Variant], *, at_once: bool
    ) -> Iterator[Sequence[Instance]]:
        base = self.base or self.engine.settings() or load_settings()
        require_reference_app(base)
        for variant in variants:
            settings_with(base, variant)
        require_comparable(variants)
        if at_once:
            self.base = base
            with measurement_lock(), two_stacks(base, variants, writes=self.writes) as stacks:
                yield stacks
            return
        if any(variant.changes.git for variant in variants):
            raise UsageError(
                "Commits are compared by two stacks at once, which need the native engine. Stop "
                "this one with `lab down`, and set LAB_ENGINE=native. Or compare settings or "
                "presets."
            )
        with self.used():
            yield (self,)


def settings_as_measured(running: Settings, measured: Settings) -> Settings:
    """Return the running stack's settings with those of a stored run that it can change to.

    Raises:
        UsageError: it can't change to one of them that says what is measured.
    """
    require_same(running, measured, ("LAB_TARGET_CPUS", "LAB_DATA_"))
    # Which engine it was does not matter, nor the addresses.
    now = running.as_env()
    values = {n: v for n, v in measured.as_env().items() if v != now[n] and not is_fixed(n)}
    return update_live_settings(running, values)
