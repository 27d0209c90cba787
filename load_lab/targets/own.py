"""A user's app as what a command measures: variants of it are options, environments and commits."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from load_lab.console import note
from load_lab.errors import LabError, UsageError
from load_lab.interrupts import interruptible, uninterrupted
from load_lab.settings import Settings
from load_lab.stack.engine import Engine
from load_lab.stack.locks import measurement_lock
from load_lab.targets.answers import find_answers
from load_lab.targets.app_process import put_data_back, ready, running
from load_lab.targets.change import DOUBLED, Change
from load_lab.targets.commits import find_commit
from load_lab.targets.declared import DeclaredTarget
from load_lab.targets.file import Variation
from load_lab.targets.instances import instance_names, used_names
from load_lab.targets.mix import SAFE_METHODS, read_mix
from load_lab.targets.observation import Sightings
from load_lab.targets.prove import declared_changes
from load_lab.targets.subject import AS_IS, Growth, Instance, Running, Variant
from load_lab.targets.variants import vary

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)")


@dataclass(frozen=True)
class OwnSubject:
    """See `Subject`. `number`: the first or the second of two instances. `starts_always`: an app
    that runs already is not taken as the variant.
    """

    engine: Engine
    target: DeclaredTarget
    number: int = 1
    starts_always: bool = False
    scenario: ClassVar[None] = None
    # Only its own file could tell.
    concurrency: ClassVar[None] = None
    shedding: ClassVar[Sequence[Variant]] = ()
    memory_limits: ClassVar[Mapping[str, int]] = {}
    growth: ClassVar[Growth] = Growth()

    @property
    def name(self) -> str:
        return self.target.name

    @property
    def settings(self) -> Settings:
        settings = self.engine.settings()
        if settings is None:
            raise LabError(f"Prometheus is not running. Start it: lab up --target {self.name}")
        return settings

    @property
    def why_in_turns(self) -> str:
        if "port" in used_names(self.target.file):
            return ""
        return (
            f"[start] in {self.target.path} has no {{port}}. Write it where its command or env has "
            "the port of url, and both run at once"
        )

    def facts(self) -> dict[str, Any]:
        return {}

    def variant(self, text: str) -> Variant:
        """See `Subject`: of options (workers=4,threads=2) or variables of its environment, of a
        commit, or `.`.
        """
        variant = Variant(text, self._variation(text))
        vary(self.target, variant.changes)
        return variant

    def _variation(self, text: str) -> Variation:
        if text == ".":
            return Variation()
        if "=" not in text:
            return Variation(git=find_commit(self.target.start_folder, text))
        options, env = dict[str, str](), dict[str, str]()
        for part in text.split(","):
            match = _ASSIGNMENT.fullmatch(part.strip())
            if not match:
                raise UsageError(f"'{part.strip()}' is not an option. Example: workers=4.")
            (env if self._is_variable(match[1]) else options)[match[1]] = match[2]
        return Variation.model_validate({"options": options, "env": env})

    def _is_variable(self, name: str) -> bool:
        """Return whether a name is one of the environment: [start.env] has it, or it looks so and
        no option has it.
        """
        start = self.target.file.start
        if start is None or name in start.options:
            return False
        is_option = any(f"{{{name}}}" in word for word in start.command)
        return name in start.env or (name.isupper() and not is_option)

    def changes(self, route: str | None = None) -> dict[str, Change]:
        """See `Subject`: what [prove] of its file says."""
        return declared_changes(self.target)

    def how_to_change(self, cause: str) -> str:
        return (
            f"Name an option of [start] that would have to help, in {self.target.path}: [prove] "
            f'"{cause}" = {{ OPTION = "{DOUBLED}" }}. '
        )

    @contextmanager
    def used(self) -> Iterator[None]:
        with measurement_lock(), interruptible():
            # Before anything is started.
            _ = self.settings
            with self._data_put_back():
                yield

    @contextmanager
    def _data_put_back(self) -> Iterator[None]:
        """Put the data back after the block, whatever ended it; a failure is reported."""
        try:
            yield
        finally:
            with uninterrupted("Putting the data back first; a moment."):
                try:
                    put_data_back(self.target, instance_names(self.target, self.number))
                except LabError as error:
                    note(f"The data could not be put back: {error}")

    @contextmanager
    def running(self, variant: Variant = AS_IS) -> Iterator[Running]:
        with self._started(variant) as target:
            yield Running(
                self.engine,
                self.settings,
                target,
                lambda: target.pids,
                target.look_for_database,
                target.unseen_services,
                lambda: find_answers(target),
                target.read_statements,
                target.why_no_statements,
                count_connections=target.count_connections,
            )

    def _started(self, variant: Variant) -> AbstractContextManager[DeclaredTarget]:
        names = instance_names(self.target, self.number)
        put_data_back(self.target, names)
        if variant.same_as(AS_IS) and not self.starts_always:
            return ready(self.target, self.settings)
        return running(vary(self.target, variant.changes), self.settings, names)

    @contextmanager
    def instances(
        self, variants: Sequence[Variant], *, at_once: bool
    ) -> Iterator[Sequence[Instance]]:
        for variant in variants:
            vary(self.target, variant.changes)
        first = replace(self, starts_always=True)
        if not at_once:
            with self.used():
                yield (first,)
            return
        self._require_two()
        # Each sees its own database only.
        target = replace(self.target, sightings=Sightings())
        second = replace(first, target=target, number=2)
        with first.used(), second._data_put_back():
            yield first, second

    def _require_two(self) -> None:
        """Check that two instances can run at once.

        Raises:
            UsageError: they would listen at one port, or write to one database.
        """
        names, path = used_names(self.target.file), self.target.path
        if self.why_in_turns:
            raise UsageError(f"Two variants can't run at once: {self.why_in_turns}.")
        operations = read_mix(self.target.mix_path).operations
        writes = any(each.method not in SAFE_METHODS for each in operations)
        if writes and names == {"port"}:
            raise UsageError(
                f"The mix writes, and both variants would write to one database: [start] in {path} "
                "has no {database}, the name of a database for each, and no {port2}, a port of its "
                "server. Write it in env or prepare. Or add --in-turns."
            )
