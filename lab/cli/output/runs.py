"""Results as people read them."""

from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from lab.analysis.completeness import Recorded
from lab.analysis.result import without_series
from lab.host.steal import NOISY_SHARE
from lab.settings import LOOPBACK

_COLOURS = {"running": "green", "starting": "yellow", "missing": "dim"}


def escaped(error: Exception) -> str:
    """An error's text, whose brackets are no markup."""
    return escape(str(error))


def compact(document: dict[str, Any]) -> dict[str, Any]:
    """A document for --json: the time series stay in the file that `files` names."""
    several = {
        name: [without_series(each) for each in document[name]]
        for name in ("runs", "arms")
        if name in document
    }
    return without_series(document) | several


def down(document: dict[str, Any]) -> RenderableType:
    return f"The stack is down ({document['engine']}). Its data stays; `lab up` starts it again."


def status(document: dict[str, Any]) -> RenderableType:
    if not document["settings"]:
        return f"Nothing is running (engine: {document['engine']}). Start it: lab up"
    services = Table(title=f"Services ({document['engine']})", title_justify="left")
    services.add_column("service", no_wrap=True)
    services.add_column("state", no_wrap=True)
    services.add_column("answers at", overflow="fold")
    for each in document["services"]:
        colour = _COLOURS.get(each["state"], "red")
        state = f"[{colour}]{each['state']}[/{colour}]"
        where = " ".join(filter(None, (each["url"], each["detail"])))
        services.add_row(each["name"], state, where)
    parts = [services, _settings(document["settings"])]
    return Group(*parts, *([_latency(found)] if (found := document["latency"]) else []))


def _latency(found: dict[str, Any]) -> Table:
    table = Table(title="Measured now, in ms", title_justify="left", show_header=False)
    table.add_row("a round trip to Postgres", str(found["database_ms"]))
    table.add_row("an answer of the server", str(found["client_ms"]))
    table.add_row(
        f"a new connection to Postgres ({found['postgres_auth']})", str(found["new_connection_ms"])
    )
    return table


def _settings(settings: dict[str, Any]) -> Table:
    table = Table(title="Active settings", title_justify="left", show_header=False)
    for name, value in settings.items():
        table.add_row(name, str(value))
    return table


def run(document: dict[str, Any]) -> RenderableType:
    """One run: the verdict first, then the figures, then where to look further."""
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, value in _figures(document).items():
        table.add_row(name, value)
    return Group(f"[bold]{escape(document['verdict'])}[/bold]", table)


def profile(document: dict[str, Any]) -> RenderableType:
    """What a request cost, then the functions that it went to."""
    per_request = document["cpu_ms_per_request"]
    cost = (
        f"{document['scenario']}: {per_request} ms of CPU per request ({document['requests']} in "
        f"{document['seconds']} s, {document['failed']} failed; {document['samples']} samples)"
    )
    table = Table(title="The ten hottest functions", title_justify="left")
    for name in ("self %", "with callees %"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("function", overflow="fold")
    for hot in document["hottest"]:
        where = f"{escape(hot['function'])} [dim]{hot['where']}[/dim]"
        table.add_row(f"{hot['self_percent']:.1f}", f"{hot['cumulative_percent']:.1f}", where)
    files = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, path in document["files"].items():
        files.add_row(name, path)
    return Group(f"[bold]{escape(cost)}[/bold]", table, files)


def demo(document: dict[str, Any]) -> RenderableType:
    """Both runs, and what to do next."""
    parts: list[RenderableType] = []
    for each in document["runs"]:
        parts += ["", f"[bold cyan]{each['profile']}[/bold cyan]", run(each)]
    settings = document["runs"][-1]["settings"]
    host, port = settings["LAB_BIND"], settings["LAB_HTTP_PORT"]
    pages = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    pages.add_row("the API", f"http://{host}:{port}/api/docs/")
    pages.add_row("metrics", f"http://{LOOPBACK}:{settings['LAB_PROMETHEUS_PORT']}/graph")
    pages.add_row("what runs", "lab status")
    pages.add_row("switch to the quick code", "lab set LAB_DETAIL=fast")
    pages.add_row("find its break point", "lab k6 breakpoint --rate 60 --duration 60s")
    pages.add_row("stop everything", "lab down")
    return Group(*parts, "", "[bold cyan]next[/bold cyan]", pages)


def _figures(document: dict[str, Any]) -> dict[str, str]:
    files: dict[str, str] = document["files"]
    host = document["host"]
    pinned = f"target on CPU {host['target_cpus']}, load on CPU {host['load_cpus']}"
    figures = {
        "requests": f"{document['requests']} in {document['seconds']} s ({document['rps']}/s)",
        "successes": _successes(document),
        "goodput": (
            f"at best {document['goodput']}/s, on average {document['goodput_mean']}/s, "
            f"within {document['bounds']['p95_ms']:.0f} ms"
        ),
        "failed": _failed(document),
        "response time": _times(document, p50="p50_ms", p95="p95_ms", p99="p99_ms"),
        "dropped iterations": str(document["dropped_iterations"]),
        "in Prometheus": _recorded(document["recorded"]),
        "limited by": document["limited_by"] + _cpu_at_break(document["break_point"]),
        "machine": f"{host['cpus']} CPUs; {pinned}{' (shared!)' if host['shared_cpus'] else ''}"
        + _stolen(document["steal"]),
    }
    some = _staleness(document["staleness"]) | _websockets(document["websockets"])
    return figures | some | files


def _successes(document: dict[str, Any]) -> str:
    if document["max_rps"] is None:
        return str(document["successes"])
    return f"{document['successes']}, {document['max_rps']}/s in the best 5 s"


def _failed(document: dict[str, Any]) -> str:
    parts = [str(document["failed"])]
    if document["retries"]:
        parts.append(f"{document['retries']} of them sent again")
    if document["unfinished"] is not None:
        parts.append(f"{document['unfinished']} cut off at the end, counted nowhere")
    return "; ".join(parts)


def _websockets(found: dict[str, Any] | None) -> dict[str, str]:
    if found is None:
        return {}
    messages = (
        "{connections} held, {closed} closed early; of {expected} messages due {lost} lost, "
        "{doubled} came twice"
    )
    delays = _times(found, p50="delay_p50_ms", p95="delay_p95_ms", most="delay_max_ms")
    return {"WebSockets": messages.format(**found), "commit to message": delays}


def _times(document: dict[str, Any], **names: str) -> str:
    """Each figure with what it is called here; nothing ended where they are None."""
    known = [
        f"{said} {document[name]} ms" for said, name in names.items() if document[name] is not None
    ]
    return ", ".join(known) or "nothing ended that took any"


def _staleness(found: dict[str, Any] | None) -> dict[str, str]:
    if found is None:
        return {}
    seen = "{seen} bookings seen after p50 {p50_ms} ms, p95 {p95_ms} ms, at most {max_ms} ms"
    return {"staleness": f"{seen.format(**found)}; {found['unseen']} not seen in time"}


def _recorded(found: dict[str, Any]) -> str:
    kept = Recorded(**found)
    return f"all {kept.k6} requests, setup's included" if kept.complete else f"NOT ALL: {kept.text}"


def _stolen(share: float) -> str:
    return (
        f"; noisy: the hypervisor took {share:.0%} of the CPU time" if share >= NOISY_SHARE else ""
    )


def _cpu_at_break(found: dict[str, Any] | None) -> str:
    if found is None or found["target_cpu"] is None:
        return ""
    busy = "target CPUs {:.0%} busy, generator CPUs {:.0%}"
    return f" ({busy.format(found['target_cpu'], found['generator_cpu'])})"
