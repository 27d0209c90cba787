"""A target file: `targets/NAME.toml`, or any path. What it may say, and what it must."""

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from lab_settings.messages import problem, shorten
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from load_lab.errors import UsageError
from load_lab.paths import project

# A variable in a header's value: ${SHOP_TOKEN}.
VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def _url(url: str) -> str:
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        raise ValueError(f"{shorten(url)} is not an address. Write it like http://127.0.0.1:8000")
    if parts.username or parts.query or parts.fragment:
        raise ValueError("no user, query or fragment: write secrets as [headers] with ${VARIABLE}")
    return url.rstrip("/")


Url = Annotated[str, AfterValidator(_url)]
UrlPath = Annotated[str, Field(pattern=r"^/\S*$")]
Command = Annotated[tuple[str, ...], Field(min_length=1)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Auth(_Part):
    """A command that prints a token, run before each load, and the header that carries it."""

    command: Command
    header: str = "Authorization"
    value: str = "Bearer {token}"


# What a variant sets: a number is written as text in the command line and the environment.
Texts = dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], str | int]


class Start(_Part):
    """How the lab starts the target. `{name}` in the command is the value of an option; `prepare`
    is a command that runs before each start. Both run in `folder`, which is relative to the file.
    """

    command: Command
    prepare: Command | None = None
    folder: str = "."
    options: Texts = {}
    env: Texts = {}


AppObject = Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$")]


class Servers(_Part):
    """What `lab run servers` starts instead of the command of [start]: objects as module:name,
    `python` relative to the folder of [start] or to the file. Threads are those of each worker.
    """

    wsgi: AppObject | None = None
    asgi: AppObject | None = None
    python: Annotated[str, Field(min_length=1)] | None = None
    workers: int | None = Field(default=None, ge=1, le=1000)
    threads: int = Field(default=8, ge=1, le=1000)


# Of a cause, by its name: values of options of [start].
Changes = dict[str, Annotated[Texts, Field(min_length=1)]]


class Reset(_Part):
    """A command that puts the target's data back; it runs in the folder of the target's file."""

    command: Command


CacheMode = Literal["off", "basic", "protected"]


class Cache(_Part):
    """The lab's Nginx in front of the target; it stores the answers of these GET operations."""

    mode: CacheMode = "off"
    seconds: int = Field(default=1, ge=1, le=86_400)
    operations: Annotated[
        tuple[Annotated[str, Field(pattern=r"^GET /\S*$")], ...], Field(min_length=1)
    ]


class Expect(_Part):
    """A path whose response has this text: it shows that the variant runs."""

    path: UrlPath
    contains: Annotated[str, Field(min_length=1)]


class Variation(_Part):
    """What a variant changes. `git` is the commit whose code runs, by any name that git knows."""

    options: Texts = {}
    env: Texts = {}
    command: Command | None = None
    cache: CacheMode | None = None
    git: Annotated[str, Field(min_length=1, pattern="^[^-]")] | None = None
    expect: Expect | None = None

    def then(self, later: "Variation") -> "Variation":
        """Return both; where both set the same, the later one wins."""
        fields = {name: getattr(later, name) for name in later.model_fields_set}
        merged = {"options": self.options | later.options, "env": self.env | later.env}
        return self.model_copy(update=fields | merged)


def _as_texts(given: Any) -> Any:
    """Return the values of each parameter as texts; the file may have one, and numbers."""
    if not isinstance(given, dict):
        return given
    lists = {name: each if isinstance(each, list) else [each] for name, each in given.items()}
    return {
        name: [str(each).lower() if isinstance(each, bool) else each for each in values]
        for name, values in lists.items()
    }


Text = Annotated[str, Field(min_length=1, coerce_numbers_to_str=True)]
Given = Annotated[
    dict[str, Annotated[tuple[Text, ...], Field(min_length=1)]], BeforeValidator(_as_texts)
]


class TargetFile(_Part):
    """The content of a target file. `ready` must answer 200 within `ready_seconds` before each
    load, or without a value one of the usual paths 200 or a redirect; the first request may import
    for long. `named` are operations that a mix may have although a word in their name says that
    they act, `leave_out` those that it may not have. `values` are those of parameters, by name.
    `prove` has the options that would have to help against a cause. With `writes`, a mix has
    writing methods too. `postgres` is how to connect to its database, to see what its sessions wait
    for.
    """

    url: Url
    title: str = ""
    ready: UrlPath | None = None
    ready_seconds: float = Field(default=30, gt=0, le=3600)
    mix: str | None = None
    headers: dict[str, str] = {}
    auth: Auth | None = None
    start: Start | None = None
    servers: Servers = Servers()
    reset: Reset | None = None
    prove: Changes = {}
    cache: Cache | None = None
    openapi: str | None = None
    manage: Command | None = None
    named: tuple[str, ...] = ()
    leave_out: tuple[str, ...] = ()
    values: Given = {}
    writes: bool = False
    postgres: Annotated[str, Field(pattern=r"^postgres(ql)?://\S+$")] | None = None


def target_path(name: str) -> Path:
    """Return the path of the target file: of `targets/NAME.toml`, or the path that `name` is."""
    return Path(name) if name.endswith(".toml") else project().targets / f"{name}.toml"


def target_names() -> list[str]:
    return sorted(path.stem for path in project().targets.glob("*.toml"))


def read_target(name: str) -> TargetFile:
    """Read a target file.

    Raises:
        UsageError: there is none, or a field of it is invalid.
    """
    path = target_path(name)
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        known = ", ".join(target_names()) or "none yet"
        raise UsageError(
            f"There is no target {name} ({path}). Known: {known}. Add it: lab target add {name} URL"
        ) from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not TOML: {error}.") from None
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}.") from None
    return parse_target(document, f"{path} is not a target file")


def parse_target(document: dict[str, Any], complaint: str) -> TargetFile:
    """Return the target.

    Raises:
        UsageError: values are invalid; the message is `complaint` with a line for each.
    """
    try:
        return TargetFile.model_validate(document)
    except ValidationError as error:
        lines = "\n".join(f"  {_place(e['loc'])}: {problem(e)}" for e in error.errors())
        raise UsageError(f"{complaint} (docs/own-app.md):\n{lines}") from None


def _place(location: tuple[str | int, ...]) -> str:
    return ".".join(shorten(part) for part in location) or "the whole"
