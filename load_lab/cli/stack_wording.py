"""The running stack for the terminal."""

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

_COLOURS = {"running": "green", "starting": "yellow", "missing": "dim"}


def down(document: dict[str, Any]) -> RenderableType:
    return f"The stack is down ({document['engine']}). Its data stays; `lab up` starts it again."


def status(document: dict[str, Any]) -> RenderableType:
    if not document["settings"]:
        return f"Nothing is running (engine: {document['engine']}). Start it: lab up"
    services = Table(title=f"Services ({document['engine']})", title_justify="left")
    services.add_column("service", no_wrap=True)
    services.add_column("state", no_wrap=True)
    services.add_column("answers at", overflow="fold")
    for service in document["services"]:
        colour = _COLOURS.get(service["state"], "red")
        state = f"[{colour}]{service['state']}[/{colour}]"
        address = " ".join(filter(None, (service["url"], service["detail"])))
        services.add_row(service["name"], state, address)
    parts: list[RenderableType] = [services, _settings(document["settings"])]
    if latency := document["latency"]:
        parts.append(_latency(latency))
    # `lab set` does not look for them.
    if missing := document.get("missing_series", {}).get("text"):
        parts.append(Text(f"Not measured whole: {missing}", style="red"))
    return Group(*parts)


def _latency(latency: dict[str, Any]) -> Table:
    table = Table(title="Measured now, in ms", title_justify="left", show_header=False)
    table.add_row("a round trip to Postgres", str(latency["database_ms"]))
    table.add_row("an answer of the server", str(latency["client_ms"]))
    table.add_row(
        f"a new connection to Postgres ({latency['postgres_auth']})",
        str(latency["new_connection_ms"]),
    )
    return table


def _settings(settings: dict[str, Any]) -> Table:
    table = Table(title="Active settings", title_justify="left", show_header=False)
    for name, value in settings.items():
        table.add_row(name, str(value))
    return table
