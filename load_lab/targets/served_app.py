"""Which application a command line serves, and with which Python. Pure functions."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath

# The interface of each server, or of gunicorn's workers, without an option.
_SERVERS = {
    **{"gunicorn": "sync", "waitress": "wsgi", "waitress-serve": "wsgi"},
    **{"uvicorn": "asgi", "daphne": "asgi", "hypercorn": "asgi", "granian": "rsgi"},
}
# gunicorn's workers on ASGI have one of these in their names.
_ASGI = re.compile("asgi|uvicorn|auto", re.IGNORECASE)
_PYTHON = re.compile(r"(python|pypy)[\d.]*")
_OBJECT = re.compile(r"[A-Za-z_][\w.]*(:[A-Za-z_][\w.]*)?")
_ELSEWHERE = {
    *("docker", "docker-compose", "podman", "podman-compose", "nerdctl"),
    *("kubectl", "ssh", "vagrant"),
}
# Programs that run another one in the environment of the project, and options that may name one.
_RUNNERS = {
    *("uv", "poetry", "pipenv", "pdm", "hatch", "rye", "pixi"),
    *("conda", "mamba", "micromamba"),
}
_PACKAGES = {"--with", "--group", "--extra", "--package"}
# Options without a value, of all servers; and those that begin with --no-.
_FLAGS = {
    *("-D", "--daemon", "-R", "--enable-stdio-inheritance", "--preload", "--reload", "--spew"),
    *("--capture-output", "--reuse-port", "--initgroups", "--log-syslog", "--proxy-protocol"),
    *("--disable-redirect-access-to-syslog", "--proxy-headers", "--access-log", "--debug"),
    *("--use-colors", "--server-header", "--date-header", "--respawn-failed-workers", "--ws"),
}


@dataclass(frozen=True)
class ServedApp:
    """The words that start its Python, and a WSGI or an ASGI application as module:object, or the
    path of a Django project's manage.py, which names them; `why` says why nothing is known.
    """

    python: tuple[str, ...] = ()
    wsgi: str = ""
    asgi: str = ""
    manage: str = ""
    why: str = ""


def served_app(command: Sequence[str], find_python: Callable[[str], str]) -> ServedApp:
    """Return what a command serves. `find_python` returns the Python of a program on the PATH."""
    command = list(command)
    names = [PurePath(word).name for word in command]
    first = next((i for i in range(len(names)) if _is_known(command, names, i)), len(names))
    if other := _ELSEWHERE.intersection(names[:first]):
        return ServedApp(why=f"{min(other)} runs it in another environment")
    if first == len(names):
        return ServedApp(why="it names no server that the lab knows")
    prefix, program, words = tuple(command[:first]), command[first], command[first + 1 :]
    if _PYTHON.fullmatch(names[first]):
        python, words = (*prefix, program), _after_options(words)
    else:
        python, words = (*prefix, _python_of(prefix, program, find_python)), command[first:]
    return _served_by(python, words)


def _is_known(command: Sequence[str], names: Sequence[str], i: int) -> bool:
    is_program = names[i] in _SERVERS or names[i] == "manage.py" or _PYTHON.fullmatch(names[i])
    return bool(is_program) and not (i and command[i - 1] in _PACKAGES)


def _after_options(words: list[str]) -> list[str]:
    """Return the script or module that Python runs, and its arguments."""
    while words and words[0].startswith("-") and words[0] != "-m":
        words = words[2 if words[0] in ("-X", "-W") else 1 :]
    return words[1:] if words[:1] == ["-m"] else words


def _python_of(prefix: Sequence[str], program: str, find_python: Callable[[str], str]) -> str:
    if PurePath(program).name == "manage.py":
        return "python"
    if "/" in program:
        return str(PurePath(program).with_name("python"))
    is_by_runner = not _RUNNERS.isdisjoint(PurePath(word).name for word in prefix)
    return "python" if is_by_runner else find_python(program)


def _served_by(python: tuple[str, ...], words: list[str]) -> ServedApp:
    """Return what a server, or manage.py, serves; `words` begin with it."""
    program = words[0] if words else ""
    name = PurePath(program).name
    if name == "manage.py":
        if _option(words, ("--settings",)):
            return ServedApp(python, why="manage.py has --settings: set DJANGO_SETTINGS_MODULE")
        return ServedApp(python, manage=program)
    if name not in _SERVERS:
        return ServedApp(python, why=f"{program or 'Python'} is no server that the lab knows")
    found = "" if "--factory" in words else _application(name, words)
    if not found:
        return ServedApp(python, why=f"the options of {name} have no module:object")
    options = ("--worker-class", "-k") if name == "gunicorn" else ("--interface",)
    chosen = _option(words, options) or _SERVERS[name]
    if _ASGI.search(chosen):
        return ServedApp(python, asgi=found)
    if chosen == "rsgi":
        return ServedApp(python, why=f"{name} serves {found} as RSGI")
    return ServedApp(python, wsgi=found)


def _application(name: str, words: Sequence[str]) -> str:
    """Return the argument of a server that is an application; only gunicorn's may lack a name."""
    for before, word in pairwise(words):
        is_application = not _takes_value(before) and _OBJECT.fullmatch(word)
        if is_application and (":" in word or name == "gunicorn"):
            return word if ":" in word else f"{word}:application"
    return ""


def _takes_value(word: str) -> bool:
    """Return whether the next word is an option's value; that of -w4 is in it."""
    is_short = not word.startswith("--")
    is_complete = "=" in word or word.startswith("--no-") or (is_short and len(word) > 2)
    return word.startswith("-") and word not in _FLAGS and not is_complete


def _option(words: Sequence[str], names: Sequence[str]) -> str:
    for word, after in pairwise([*words, ""]):
        for name in names:
            if word.startswith(name):
                return word.removeprefix(name).removeprefix("=") or after
    return ""
