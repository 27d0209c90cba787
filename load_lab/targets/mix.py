"""A mix: the operations of a target that a load sends, with their shares and addresses.

A source (sources/) finds operations, `lab mix make` writes them, k6/lib/mix.js reads them.
"""

import json
from pathlib import Path
from typing import Final, Literal, Self

from lab_settings.messages import problem, shorten
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from load_lab.errors import UsageError

MIX_VERSION: Final = 1

SAFE_METHODS = frozenset({"GET", "HEAD"})

# In a path or body, k6 replaces the first with a text that no other request has, and the second
# with the id of an object that it created before the load.
UNIQUE: Final = "${lab.n}"
OBJECT: Final = "${lab.id}"

# Headers of a source's request that a mix may have: what decides the form of an answer. Never one
# that says who asks.
KEPT_HEADERS = frozenset(
    {"accept", "accept-language", "content-type", "prefer", "x-requested-with"}
)

Method = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Request(_Part):
    """One concrete request: path and query string, and the body as text."""

    path: str = Field(pattern="^/")
    body: str | None = None


class CreatedBy(_Part):
    """Where the object of an operation comes from: `operation` is the POST's name, `id_from` the
    field of its answer that has the id (`data.id`: within another), or the header `Location`.
    """

    operation: str
    id_from: str


class Page(_Part):
    """What the pages of an operation looked like: their lengths in characters, from `least` to
    `most`, and whether one had a login form.
    """

    least: int
    most: int
    has_login: bool


class Operation(_Part):
    """Requests of one name: `GET /api/orders/{id}/`. `weight` is its share, in any unit; `expect`
    the status that it answers with. With `created_by`, each request has an object of its own.
    `page` is None unless the answers were HTML.
    """

    name: str
    method: Method
    weight: float = Field(gt=0, allow_inf_nan=False)
    expect: int = Field(ge=100, le=599)
    headers: dict[str, str] = {}
    created_by: CreatedBy | None = None
    page: Page | None = None
    requests: tuple[Request, ...] = Field(min_length=1)


class LeftOut(_Part):
    """An operation that is not in the mix, and why. `status`: what it answered, if it was asked."""

    name: str
    status: int | None = None
    reason: str


class Arrival(_Part):
    """When a request of a log arrived: seconds after its first one, and its place in the mix."""

    at: float = Field(ge=0, allow_inf_nan=False)
    operation: int = Field(ge=0)
    request: int = Field(ge=0)


class Mix(_Part):
    """What `source` (an address or a file) says of a target. `arrivals` is empty unless the times
    of a log were kept.
    """

    mix_version: Literal[1] = MIX_VERSION
    source: str
    operations: tuple[Operation, ...] = Field(min_length=1)
    left_out: tuple[LeftOut, ...] = ()
    arrivals: tuple[Arrival, ...] = ()

    @model_validator(mode="after")
    def _creators_are_known(self) -> Self:
        creators = {each.name for each in self.operations if each.created_by is None}
        for each in self.operations:
            if each.created_by and each.created_by.operation not in creators:
                raise ValueError(f"{each.name} needs {each.created_by.operation}, which is missing")
        return self


def read_mix(path: Path) -> Mix:
    """Read a mix.

    Raises:
        UsageError: there is none, it is not a mix, or one of another version.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"There is no mix {path}. Make it: lab mix make TARGET") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON ({error}). Make it again: lab mix make") from None
    version = document.get("mix_version") if isinstance(document, dict) else None
    if version != MIX_VERSION:
        raise UsageError(
            f"{path} has mix version {shorten(version)}; this lab reads {MIX_VERSION}. Make it "
            "again: lab mix make"
        )
    try:
        return Mix.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise UsageError(f"{path} is no valid mix: {shorten(place)}: {problem(first)}.") from None


def write_mix(mix: Mix, path: Path) -> None:
    """Write the mix whole: a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    document = mix.model_dump(exclude_defaults=True) | {"mix_version": mix.mix_version}
    part.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    part.replace(path)
