"""Print, as JSON, which servers a Python has, and whether it imports an app's WSGI and ASGI
objects: `python - < served_app_probe.py`.

It runs in the environment of the project (Django 2.2 or later, Python 3.6 or later) and imports
nothing of the lab; servers.py starts it and reads its output.
"""

import json
import os
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

# The project may print its own lines before and after.
BEGIN, END = "<<<servers ", " servers>>>"
KINDS = ("wsgi", "asgi")


def version(program: str) -> "str | None":
    """Return the version of a server; None if it is not there."""
    try:
        return str(getattr(import_module(program), "__version__", "unknown"))
    except ImportError:
        return None


def django_objects(path: str) -> "dict[str, str]":
    """Return the objects that the settings of a manage.py name; else those of a new project."""
    match = re.search(r"DJANGO_SETTINGS_MODULE\W+([\w.]+)", Path(path).read_text())
    if match:
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", match.group(1))
    module = os.environ.get("DJANGO_SETTINGS_MODULE", "")
    if not module:
        return {}
    from django.conf import settings

    found = {}  # type: dict[str, str]
    for kind in KINDS:
        named = getattr(settings, kind.upper() + "_APPLICATION", None)
        dotted = str(named or "{}.{}.application".format(module.split(".")[0], kind))
        found[kind] = ":".join(dotted.rsplit(".", 1))
    return found


def problem(text: str) -> str:
    """Return why an object can't be imported; empty if it can."""
    module, _, name = text.partition(":")
    try:
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as error:
        return "{}: {}".format(type(error).__name__, str(error).split("\n")[0])
    return ""


question = json.loads(os.environ["LOAD_LAB_SERVERS"])
objects = dict(django_objects(question["manage"]) if question["manage"] else {})
objects.update({kind: text for kind, text in question["objects"].items() if text})
answer = {
    "versions": {program: version(program) for program in question["programs"]},
    "objects": objects,
    "problems": {kind: problem(text) for kind, text in objects.items()},
}
print("\n" + BEGIN + json.dumps(answer) + END)
sys.stdout.flush()
# The app may have started threads.
os._exit(0)
