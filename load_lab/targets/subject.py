"""What a command measures: a target, and what the lab can do to it."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from load_lab.errors import LabError
from load_lab.machine.processes import server_pids
from load_lab.settings import Settings
from load_lab.stack.engine import Engine
from load_lab.targets.answers import Answer
from load_lab.targets.change import Change
from load_lab.targets.file import Variation
from load_lab.targets.statements import Statements
from load_lab.targets.target import Target


@dataclass(frozen=True)
class Variant:
    """A target as it is, or with changes; `name` is what the user typed. Options of the reference
    app are settings.
    """

    name: str = "."
    changes: Variation = field(default_factory=Variation)

    def same_as(self, other: "Variant") -> bool:
        return self.changes == other.changes


AS_IS = Variant()


@dataclass(frozen=True)
class Running:
    """A running variant: the stack that loads it, and how the main processes of what answers its
    requests are found, by name.

    An app may open its database's connections with its first requests only, or for each one: then
    `look`, called under load, looks for so many seconds what it is connected to, and `find_unseen`
    names the services that do not count, or not for certain. `find_answers` requests each operation
    once; `read_statements` reads those of its Postgres, with `texts=True` their texts, too, if it
    counts them; else `why_no_statements` says why not. `count_connections` counts those to its
    database, if it is known.
    """

    engine: Engine
    settings: Settings
    target: Target
    find_pids: Callable[[], Mapping[str, int]]
    look: Callable[[float], None] | None = None
    find_unseen: Callable[[], Sequence[str]] = tuple
    find_answers: Callable[[], Mapping[str, Answer]] = dict
    read_statements: Callable[..., Statements | None] = lambda **_: None
    why_no_statements: Callable[[], str] = str
    count_connections: Callable[[int], int | None] = lambda _server_pid: None

    def require_visible(self, unknown: str) -> None:
        """Check that its processes are visible; else `unknown` are not known.

        Raises:
            LabError: they are not.
        """
        if not server_pids(self.find_pids()):
            raise LabError(
                f"The processes of {self.target.name} are not visible from here, so {unknown} are "
                "not known. Run `lab` as root on the target's host: Linux, since Docker Desktop's "
                "containers run in a virtual machine."
            )


@dataclass(frozen=True)
class Stored:
    """What a load has done: its requests, its duration, and the rows that it stored."""

    requests: int
    seconds: float
    rows: int


@dataclass(frozen=True)
class Folder:
    """Files that a target's services write; `limit` has the most bytes by which a load may let
    them grow or, `in_all`, that they may have. `label` names it, with {requests} and {rows}.
    """

    label: str
    paths: Callable[[], Sequence[Path]]
    limit: Callable[[Stored], float]
    in_all: bool = False


@dataclass(frozen=True)
class Growth:
    """What a long load may let grow besides processes: folders by their names, and the rows that
    `count_rows` counts, which are called `rows`.
    """

    folders: Mapping[str, Folder] = field(default_factory=dict)
    rows: str = ""
    count_rows: Callable[[], int] = int


class Instance(Protocol):
    """What runs one variant at a time."""

    def running(self, variant: Variant = AS_IS) -> AbstractContextManager[Running]:
        """Run a variant for the block, with the data that it had and nothing that another one
        stored.

        Raises:
            UsageError: the target has no such variant.
            LabError: it does not start.
        """


class Subject(Instance, Protocol):
    """A target that the lab starts, or sets, as a variant says. What it can't do, it says with a
    UsageError that names the key of the target's file which would allow it.
    """

    @property
    def engine(self) -> Engine: ...

    @property
    def name(self) -> str: ...

    @property
    def scenario(self) -> str | None:
        """Return which requests it gets; None for those of its mix."""

    @property
    def settings(self) -> Settings:
        """Return the settings of the stack that loads it."""

    @property
    def why_in_turns(self) -> str:
        """Return why two variants can't run at once; empty if they can."""

    @property
    def concurrency(self) -> int | None:
        """Return how many requests it works on at once, at most; None if that is not known."""

    def changes(self, route: str | None = None) -> dict[str, Change]:
        """Return what can be changed of it, by the name of the cause that it would have to help
        against. `route` is that of the load.

        Raises:
            UsageError: nothing can, or a change is invalid.
        """

    def how_to_change(self, cause: str) -> str:
        """Return the sentence that says what its file needs to change something for a cause."""

    @property
    def shedding(self) -> Sequence[Variant]:
        """Return the variants that reject what is too much, and that queue it; empty if the lab
        does not know which would.
        """

    @property
    def memory_limits(self) -> Mapping[str, int]:
        """Return the most bytes of each of its services whose memory is in Prometheus."""

    @property
    def growth(self) -> Growth:
        """Return what a long load may let grow besides its processes.

        Raises:
            UsageError: that can't be seen from here.
        """

    def facts(self) -> dict[str, Any]:
        """Return what it reports of itself: the versions of its programs, and its data.

        Raises:
            LabError: it is in a state that makes each result void.
        """

    def variant(self, text: str) -> Variant:
        """Return the variant that a user typed; `.` is the target as it is.

        Raises:
            UsageError: it has none like this.
        """

    def used(self) -> AbstractContextManager[None]:
        """Use it exclusively for the block; afterwards its settings and data are as before."""

    def instances(
        self, variants: Sequence[Variant], *, at_once: bool
    ) -> AbstractContextManager[Sequence[Instance]]:
        """Yield what these variants can run in: two instances at once, or one for all in turns.
        It is in exclusive use then.

        Raises:
            UsageError: a variant is invalid, or they can't run at once.
        """
