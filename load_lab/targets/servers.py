"""The servers that an app's environment has, and the commands that start it with each of them."""

import json
import re
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from typing import Any, Final

from load_lab.errors import UsageError
from load_lab.stack import http
from load_lab.targets.app_process import command_line, environment
from load_lab.targets.declared import DeclaredTarget
from load_lab.targets.file import Command, Servers, Start, TargetFile
from load_lab.targets.instances import filled, instance_names
from load_lab.targets.project_shell import printed_by_project
from load_lab.targets.served_app import ServedApp, served_app

KINDS: Final = ("wsgi", "asgi")
# A command with this word is started in the environment of the app.
PYTHON: Final = "{python}"
_SCRIPT = Path(__file__).with_name("served_app_probe.py")
# An app may import for long.
_TIMEOUT_SECONDS: Final = 120
_EXAMPLE = '[servers] with python = "venv/bin/python" and wsgi = "shop.wsgi:application"'


@dataclass(frozen=True)
class AppServers:
    """What the servers of an app are started with: `values` of the names in braces, and why one is
    `missing`; the `versions` of the servers in its `environment`; and what was `guessed`, from
    where.
    """

    environment: str
    values: Mapping[str, tuple[str, ...]]
    missing: Mapping[str, str]
    versions: Mapping[str, str]
    guessed: Mapping[str, str]

    def command(self, words: Command) -> Command:
        """Return the command with the values in place of their names; Python's may be several."""
        texts = {name: value[0] for name, value in self.values.items()}
        others = re.compile(r"\{(" + "|".join(texts) + r")\}")
        filled_words = [
            self.values["python"]
            if word == PYTHON
            else (others.sub(lambda match: texts[match[1]], word),)
            for word in words
        ]
        return tuple(part for parts in filled_words for part in parts)

    def why_not(self, words: Command) -> str:
        """Return why the command can't be started; empty if it can."""
        program = program_of(words)
        if program and program not in self.versions:
            return f"{program}: not in {self.environment}"
        names = (name for name in self.missing if f"{{{name}}}" in words)
        return next((self.missing[name] for name in names), "")


def program_of(words: Command) -> str:
    """Return the module that a command's Python runs; empty if there is none."""
    after = words[words.index(PYTHON) + 1 :] if PYTHON in words else ()
    return after[1] if after[:1] == ("-m",) and len(after) > 1 else ""


def find_servers(target: DeclaredTarget, programs: Collection[str], cpus: int) -> AppServers:
    """Return which of the programs can serve a target, whose workers are by default as many as
    its CPUs. What [servers] does not name is guessed from the command of [start].

    Raises:
        UsageError: the file or its command do not say what is served, or it can't be imported.
    """
    target = filled(target, instance_names(target))
    named, start = target.file.servers, _start(target)
    env = environment(start)
    app = served_app(command_line(start), partial(_python_on_path, path=env.get("PATH")))
    python = (_named_python(target, named.python),) if named.python else app.python
    objects, sources = _objects(named, app)
    if not python or not (objects or app.manage):
        raise UsageError(
            f"The command of [start] in {target.path} does not tell what is served: {app.why}. "
            f"Write {_EXAMPLE} into that file."
        )
    question = {"programs": sorted(programs), "objects": objects, "manage": app.manage}
    answer = _ask(target, python, env, question)
    _require_named(target, named, answer["problems"])
    found, missing = _found(answer["objects"], answer["problems"])
    by_settings = dict.fromkeys(KINDS, "the settings of manage.py")
    origins = {"python": "the command of [start]", **by_settings, **sources}
    values = {"python": python, **found, **_options(target.file, cpus)}
    guessed = {
        name: f"{' '.join(values[name])} ({origin})"
        for name, origin in origins.items()
        if name in values and not getattr(named, name)
    }
    versions = {name: version for name, version in answer["versions"].items() if version}
    return AppServers(_environment_name(python), values, missing, versions, guessed)


def _start(target: DeclaredTarget) -> Start:
    """Return how the target is started.

    Raises:
        UsageError: the lab does not start it, or not with http.
    """
    if target.file.start is None:
        raise UsageError(
            f"{target.path} has no [start], so the lab can't start servers of {target.name}. Add "
            '[start] with command = ["venv/bin/gunicorn", …].'
        )
    if target.url.startswith("https"):
        raise UsageError(
            f"url in {target.path} is https, which servers speak only with a certificate. Name an "
            "address with http, at which they can listen."
        )
    return target.file.start


def _options(file: TargetFile, cpus: int) -> dict[str, tuple[str, ...]]:
    host, port = http.address(file.url)
    return {
        "host": (host,),
        "port": (str(port),),
        "address": (f"[{host}]:{port}" if ":" in host else f"{host}:{port}",),
        "workers": (str(file.servers.workers or cpus),),
        "threads": (str(file.servers.threads),),
    }


def _found(
    objects: Mapping[str, str], problems: Mapping[str, str]
) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Return the objects that can be imported, and why the others are missing."""
    found, missing = dict[str, tuple[str, ...]](), dict[str, str]()
    for kind in KINDS:
        if kind not in objects:
            missing[kind] = f"no {kind}: name it in [servers]"
        elif problems[kind]:
            missing[kind] = (
                f"no {kind}: {objects[kind]} can't be imported ({problems[kind]}). Name it in "
                "[servers]"
            )
        else:
            found[kind] = (objects[kind],)
    return found, missing


def _python_on_path(program: str, path: str | None) -> str:
    """Return the Python of a program's environment: next to it, or of its first line."""
    found = shutil.which(program, path=path)
    if found is None:
        return "python"
    script = Path(found).resolve()
    if script.with_name("python").exists():
        return str(script.with_name("python"))
    with script.open("rb") as file:
        first = file.readline().decode(errors="replace").strip()
    return first[2:].split()[0] if re.match(r"#!\S*python", first) else "python"


def _named_python(target: DeclaredTarget, name: str) -> str:
    """Return the interpreter that [servers] names.

    Raises:
        UsageError: it does not exist.
    """
    if "/" not in name or (target.start_folder / name).exists():
        return name
    if (target.folder / name).exists():
        return str(target.folder / name)
    raise UsageError(
        f"python = {name} of [servers] in {target.path} is neither in {target.start_folder} nor "
        f"in {target.folder}. Name the interpreter of the app's environment."
    )


def _objects(named: Servers, app: ServedApp) -> tuple[dict[str, str], dict[str, str]]:
    """Return the WSGI and the ASGI object as far as they are named or guessed, and from where."""
    objects = {kind: getattr(named, kind) or getattr(app, kind) for kind in KINDS}
    sources = {kind: "the command of [start]" for kind in KINDS if objects[kind]}
    for kind, other in (KINDS, KINDS[::-1]):
        module, _, name = objects[other].partition(":")
        package, _, last = module.rpartition(".")
        if not objects[kind] and last == other and other in sources:
            objects[kind] = f"{package}.{kind}:{name}".removeprefix(".")
            sources[kind] = f"next to {module}"
            break
    return {kind: text for kind, text in objects.items() if text}, sources


def _ask(
    target: DeclaredTarget, python: tuple[str, ...], env: Mapping[str, str], question: Any
) -> dict[str, Any]:
    """Return what the app's Python has and imports.

    Raises:
        UsageError: it can't be run, or the project's settings can't be imported.
    """
    environ = {**env, "LOAD_LAB_SERVERS": json.dumps(question)}
    try:
        printed = printed_by_project(
            *(_SCRIPT, "servers", [*python, "-"], target.start_folder, environ),
            seconds=_TIMEOUT_SECONDS,
        )
    except UsageError as error:
        raise UsageError(
            f"{error}\nIf that is another one, write {_EXAMPLE} into {target.path}."
        ) from None
    answer: dict[str, Any] = json.loads(printed)
    return answer


def _require_named(target: DeclaredTarget, named: Servers, problems: Mapping[str, str]) -> None:
    """Check that what the file names can be imported.

    Raises:
        UsageError: it can't.
    """
    for kind in KINDS:
        text = getattr(named, kind)
        if text and problems[kind]:
            raise UsageError(
                f"{kind} = {text} of [servers] in {target.path} can't be imported in "
                f"{target.start_folder}: {problems[kind]}. Correct it, or the folder of [start]."
            )


def _environment_name(python: tuple[str, ...]) -> str:
    """Return how an environment is called: venv/ of venv/bin/python."""
    folder = PurePath(python[-1]).parent
    is_environment = folder.name == "bin" and folder.parent.name
    return f"{folder.parent}/" if is_environment else f"the environment of {' '.join(python)}"
