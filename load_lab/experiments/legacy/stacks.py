"""The stack.toml files of the pinned old stacks in experiments/legacy/."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from lab_settings.messages import problem
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from load_lab.errors import UsageError
from load_lab.paths import lab_file

FOLDER = lab_file("experiments/legacy")


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Arm(_Table):
    """One way to serve a stack. Its commands contain {host} and {port} for the address."""

    title: str
    # The server that /lab/verify finds in its call stack.
    server: str
    web: list[str]
    worker: list[str] = []
    workers: Annotated[int, Field(ge=0, le=64)] = 0
    # Backend of the channel layer, and its CPU: one of the target's, or a separate one.
    layer: Literal["redis", "ipc"] | None = None
    layer_cpu: Literal["target", "own"] = "target"

    @model_validator(mode="after")
    def _workers_have_a_command(self) -> "Arm":
        if self.workers and not self.worker:
            raise ValueError("workers need a command: worker")
        return self

    def commands(self, host: str, port: int) -> Iterator[tuple[str, list[str]]]:
        """Yield name and command of the server, listening at host and port, and of each worker."""
        yield "legacy-web", [part.format(host=host, port=port) for part in self.web]
        for number in range(1, self.workers + 1):
            yield f"legacy-worker-{number}", self.worker


class Stack(_Table):
    """A complete stack.toml; `name` is the name of its folder."""

    name: str
    title: str
    source: str
    python: Annotated[str, Field(pattern=r"^3\.\d+$")]
    # Its Django project, below experiments/legacy/projects.
    project: str
    # Whether its installation needs a C compiler.
    compiler: bool = False
    # Whether it has a separate database, which `prepare` fills.
    database: bool = False
    prepare: list[str] = []
    # Its workbench routes, by k6's names.
    routes: list[str]
    # The response of /lab/verify, the same for every arm.
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
    """Return the names of the old stacks."""
    return sorted(path.parent.name for path in FOLDER.glob("*/stack.toml"))


def stack(name: str) -> Stack:
    """Return the stack called `name`.

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
        errors = "\n".join(
            f"  {'.'.join(map(str, e['loc']))}: {problem(e)}" for e in error.errors()
        )
        raise UsageError(f"{path} does not follow the schema:\n{errors}") from None


def find(stack_name: str, arm_name: str) -> tuple[Stack, Arm]:
    """Return a stack and one of its arms.

    Raises:
        UsageError: the stack or the arm is unknown.
    """
    match = stack(stack_name)
    if arm_name not in match.arms:
        known = ", ".join(match.arms)
        raise UsageError(f"The old stack {stack_name} has no arm {arm_name}. Known: {known}.")
    return match, match.arms[arm_name]
