"""The routes of a Django project, read from the project itself with `manage.py shell`."""

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, get_args

from lab_settings.messages import shorten
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from load_lab.errors import UsageError
from load_lab.targets.mix import Method
from load_lab.targets.sources.described import ApiOperation, Parameter
from load_lab.targets.sources.paths import Template, parameter_names

# Sent to the Python of the project. The lab does not import it.
_SCRIPT = Path(__file__).with_name("django_routes.py")
# As in the script.
_OUTPUT = re.compile(r"<<<routes (.*) routes>>>")
# A project may import for long; it has no reason to wait for anything.
_TIMEOUT_SECONDS: Final = 120
_LINES_SHOWN = 5


class Route(BaseModel):
    """A route: `/ping/{code}/`, the regular expression of each parameter, and its name, with
    namespaces. Optional parts of a route make several, with the same name. `views` are the names of
    what answers each method: a function, or a class and the action of a view set.
    """

    model_config = ConfigDict(frozen=True)

    template: str
    patterns: dict[str, str] = {}
    name: str = ""
    views: dict[str, tuple[str, ...]]

    def names_of(self, method: str) -> tuple[str, ...]:
        """Return the names that describe one method: that of the route is shared by all of them."""
        own = (self.name.rpartition(":")[2],) if len(self.views) == 1 else ()
        return (*own, *self.views[method])


_ROUTES = TypeAdapter(tuple[Route, ...])


def read_routes(
    command: Sequence[str], folder: Path, environ: Mapping[str, str]
) -> tuple[Route, ...]:
    """Return the routes of a project, in the order in which Django tries them.

    `command` starts the project's manage.py: `["venv/bin/python", "manage.py"]`. It runs in
    `folder`, with `environ` as its whole environment.

    Raises:
        UsageError: the command cannot be started, fails, hangs, or prints no routes.
    """
    argv = [*command, "shell"]
    process = _run(argv, folder, environ)
    printed = _OUTPUT.findall(process.stdout)
    if process.returncode or not printed:
        what = f"failed ({process.returncode})" if process.returncode else "printed no routes"
        raise UsageError(
            f"`{' '.join(argv)}` {what} in {folder}:\n{_end(process.stdout + process.stderr)}"
        )
    return _parse(printed[-1], folder)


def route_templates(routes: Sequence[Route]) -> list[Template]:
    """Return a template for each method of each route, without those that differ only by a slash
    at the end.
    """
    paths = {route.template for route in routes}
    return [
        Template(method, route.template, route.patterns, route.name, route.names_of(method))
        for route in routes
        if f"{route.template}/" not in paths
        for method in get_args(Method)
        if method in route.views
    ]


def route_operation(template: Template) -> ApiOperation:
    """Return a route as an operation: values come from its regular expressions and from answers."""
    path = template.path_template
    parameters = tuple(Parameter(name, template.values(name)) for name in parameter_names(path))
    return ApiOperation(
        template.method,
        path,
        template.name,
        parameters,
        query=(),
        credentials=(),
        views=template.views,
        patterns=tuple(sorted(template.patterns.items())),
    )


def _run(
    argv: Sequence[str], folder: Path, environ: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    shown = f"`{' '.join(argv)}` in {folder}"
    # A file: Django's shell reads standard input only if it has data at that moment.
    with _SCRIPT.open("rb") as script:
        try:
            return subprocess.run(
                argv,
                cwd=folder,
                env=dict(environ),
                stdin=script,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=_TIMEOUT_SECONDS,
                check=False,
            )
        except (OSError, ValueError) as error:
            raise UsageError(f"{shown} cannot be started: {error}.") from None
        except subprocess.TimeoutExpired:
            raise UsageError(f"Timed out after {_TIMEOUT_SECONDS} s waiting for {shown}.") from None


def _parse(text: str, folder: Path) -> tuple[Route, ...]:
    try:
        routes = _ROUTES.validate_python(json.loads(text))
    except (ValueError, ValidationError):
        raise UsageError(f"The project in {folder} printed no routes: {shorten(text)}") from None
    if not routes:
        raise UsageError(f"The project in {folder} has no routes. Does ROOT_URLCONF name its URLs?")
    return routes


def _end(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    return "\n".join(lines[-_LINES_SHOWN:]) or "it printed nothing"
