"""The routes of a Django project, read from the project itself with `manage.py shell`."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, get_args

from lab_settings.messages import shorten
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from load_lab.errors import UsageError
from load_lab.targets.mix import Method
from load_lab.targets.project_shell import printed_by_project
from load_lab.targets.sources.described import ApiOperation, Parameter
from load_lab.targets.sources.paths import Template, parameter_names

_SCRIPT = Path(__file__).with_name("django_routes.py")
# A project may import for long; it has no reason to wait for anything.
_TIMEOUT_SECONDS: Final = 120


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
    printed = printed_by_project(
        _SCRIPT, "routes", [*command, "shell"], folder, environ, seconds=_TIMEOUT_SECONDS
    )
    return _parse(printed, folder)


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


def _parse(text: str, folder: Path) -> tuple[Route, ...]:
    try:
        routes = _ROUTES.validate_python(json.loads(text))
    except (ValueError, ValidationError):
        raise UsageError(f"The project in {folder} printed no routes: {shorten(text)}") from None
    if not routes:
        raise UsageError(f"The project in {folder} has no routes. Does ROOT_URLCONF name its URLs?")
    return routes
