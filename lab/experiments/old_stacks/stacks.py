"""What the pinned old stacks in experiments/legacy/ are: their stack.toml."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from lab.errors import UsageError
from lab.paths import ROOT

FOLDER = ROOT / "experiments/legacy"


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Arm(_Table):
    """One way to serve a stack. Commands have {host} and {port} where the address belongs."""

    title: str
    # What /lab/verify finds among its callers.
    server: str
    web: list[str]
    worker: list[str] = []
    workers: Annotated[int, Field(ge=0, le=64)] = 0
    # Where the channel layer is kept, and on whose CPU: the target's, or one that nothing else has.
    layer: Literal["redis", "ipc"] | None = None
    layer_cpu: Literal["target", "own"] = "target"

    @model_validator(mode="after")
    def _workers_have_a_command(self) -> "Arm":
        if self.workers and not self.worker:
            raise ValueError("workers need a command: worker")
        return self

    def commands(self, host: str, port: int) -> Iterator[tuple[str, list[str]]]:
        """The server's command, listening there, and one for each worker; each with a name."""
        yield "legacy-web", [part.format(host=host, port=port) for part in self.web]
        for number in range(1, self.workers + 1):
            yield f"legacy-worker-{number}", self.worker


class Stack(_Table):
    """A whole stack.toml; `name` is its folder's."""

    name: str
    title: str
    source: str
    python: Annotated[str, Field(pattern=r"^3\.\d+$")]
    # The Django project that it runs, below experiments/legacy/projects.
    project: str
    # Whether a C compiler is needed to install it.
    compiler: bool = False
    # Whether it has a database of its own, which `prepare` fills.
    database: bool = False
    prepare: list[str] = []
    # The routes of the workbench that it has, as k6 calls them.
    routes: list[str]
    # What /lab/verify says, whichever arm runs.
    expected: dict[str, str | bool]
    arms: dict[str, Arm]

    @property
    def folder(self) -> Path:
        return FOLDER / self.name

    @property
    def project_folder(self) -> Path:
        return FOLDER / "projects" / self.project

    @property
    def requirements(self) -> Path:
        return self.folder / "requirements.txt"


def names() -> list[str]:
    """The stacks that there are."""
    return sorted(path.parent.name for path in FOLDER.glob("*/stack.toml"))


def stack(name: str) -> Stack:
    """The stack called `name`.

    Raises:
        UsageError: there is none, or its file does not follow the schema.
    """
    if name not in names():
        known = ", ".join(names()) or "none"
        raise UsageError(f"There is no old stack {name}. Known: {known} (in experiments/legacy/).")
    path = FOLDER / name / "stack.toml"
    try:
        return Stack.model_validate({"name": name, **tomllib.loads(path.read_text())})
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not TOML: {error}.") from None
    except ValidationError as error:
        found = "\n".join(f"  {'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise UsageError(f"{path} does not follow the schema:\n{found}") from None


def find(stack_name: str, arm_name: str) -> tuple[Stack, Arm]:
    """A stack and one of its arms.

    Raises:
        UsageError: the stack or the arm is not known.
    """
    found = stack(stack_name)
    if arm_name not in found.arms:
        known = ", ".join(found.arms)
        raise UsageError(f"The old stack {stack_name} has no arm {arm_name}. Known: {known}.")
    return found, found.arms[arm_name]
