"""The running stack for the terminal."""

from typing import Any

from lab_settings.declaration import names_used_by
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

_COLOURS = {"running": "green", "starting": "yellow", "no answer": "yellow", "missing": "dim"}
# By whether the command that started it still runs.
_STATE_OF_LEFT = {True: "In use", False: "Of a command that has ended"}


def down(document: dict[str, Any]) -> RenderableType:
    lines = [f"The stack is down ({document['engine']}). Its data stays; `lab up` starts it again."]
    for each in document["left"]:
        is_gone = document["data_removed"] and not each["is_running"]
        state = "Removed" if is_gone else _STATE_OF_LEFT[each["is_running"]]
        lines.append(f"{state}: {left_text(each, is_gone=is_gone)}")
    return Text("\n".join(lines))


def left_text(left: dict[str, Any], *, is_gone: bool = False) -> str:
    """Describe what a command started for itself, with the size of its data."""
    text = f"{left['processes']} processes of {left['command']}, {left['what']}"
    if not left["data_bytes"]:
        return text
    advice = "" if is_gone or left["is_running"] else "; `lab down --data` removes it"
    return f"{text}: {left['data_bytes'] / 1e6:,.0f} MB of data{advice}"


def status(document: dict[str, Any]) -> RenderableType:
    left = [
        Text(f"{_STATE_OF_LEFT[one['is_running']]}: {left_text(one)}")
        for one in document.get("left", ())
    ]
    if not document["settings"]:
        return Group(f"Nothing is running (engine: {document['engine']}). Start it: lab up", *left)
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
    return Group(*parts, *left)


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
    # Without the reference app, nothing that runs reads the others.
    used = settings if settings["LAB_REFERENCE_APP"] == "on" else names_used_by("lab", "k6")
    for name in used:
        table.add_row(name, str(settings[name]))
    if rest := len(settings) - len(used):
        table.add_row("of the reference app", f"{rest}, not in use")
    return table
