"""The conditions of the measurement, and the warnings of the page."""

from lab.analysis.formatting import NO_VALUE, quantity, times
from lab.experiments.store import CellRun
from lab.host.noise import NOISY_SHARE, UNSTEADY_RATIO, extremes
from lab.report.blocks import Block, Code, Items, Paragraph, Table, columns, entries
from lab.report.model import Report


def notices(report: Report) -> list[Block]:
    """Return the warnings that a reader needs before the results."""
    header, found = report.header, list[Block]()
    if header.get("quick"):
        found.append(Paragraph(_QUICK, "warning"))
    if header.get("state") != "finished":
        found.append(Paragraph(_unfinished(report), "warning"))
    if _host(report).get("shared_cpus"):
        found.append(Paragraph(_SHARED, "warning"))
    if noisy := _noisy(report):
        found.append(Paragraph(noisy, "warning"))
    if unsteady := _unsteady(report):
        found.append(Paragraph(unsteady, "warning"))
    return found


def _unsteady(report: Report) -> str:
    """Return a warning if the machine's speed varied much between cells, otherwise ""."""
    found = extremes((run.result.cpu_speed, _measured_as(run)) for run in report.runs if run.result)
    if not found or found.ratio < UNSTEADY_RATIO:
        return ""
    return (
        f"UNSTEADY MACHINE: the same piece of work ran {times(found.ratio)} as fast around one "
        f"measurement ({found.fastest}) as around another ({found.slowest}). Where the CPU is the "
        "limit, a difference of that size may be the machine's: repeat it (--repeat)."
    )


def _measured_as(run: CellRun) -> str:
    return f"{run.name}, repeat {run.repeat}"


def _noisy(report: Report) -> str:
    """Return a warning with the cells that lost CPU time to the hypervisor, otherwise ""."""
    found = [
        (run.result.steal, run.name)
        for run in report.runs
        if run.result and run.result.steal >= NOISY_SHARE
    ]
    if not found:
        return ""
    worst, name = max(found)
    return (
        f"NOISY MACHINE: the hypervisor took {NOISY_SHARE:.0%} of the CPU time or more in "
        f"{quantity(len(found), 'measurement')}, {worst:.0%} at most ({name}). Their rates are "
        "lower than the target's own."
    )


_QUICK = (
    "QUICK RUN: durations were scaled down, and cells may have been left out. It shows that the "
    "experiment works; it is a preview, not a result."
)
_SHARED = (
    "SHARED CPUs: the target and the load generator ran on the same CPUs and took time from each "
    "other. The rates are lower than the target's capacity."
)


def _unfinished(report: Report) -> str:
    runs = len(report.runs)
    planned = len(report.header.get("plan", []))
    state = {"interrupted": "INTERRUPTED", "running": "STILL RUNNING"}.get(
        str(report.header.get("state")), "INCOMPLETE"
    )
    return f"{state}: {runs} of {quantity(planned, 'planned measurement')} are in this report."


def warnings(report: Report) -> list[Block]:
    found = [str(text) for text in report.header.get("warnings", [])]
    return [Items(found)] if found else []


def _host(report: Report) -> dict[str, object]:
    found: dict[str, object] = report.header.get("host") or {}
    return found


def conditions(report: Report) -> list[Block]:
    header, host = report.header, _host(report)
    bounds = header.get("bounds", {})
    rows = [
        ("run", header.get("run")),
        ("commit", host.get("commit")),
        ("started (UTC)", header.get("started")),
        ("ended (UTC)", header.get("ended") or "it did not end"),
        ("repeats per cell", header.get("repeats")),
        ("quick", "yes: durations scaled down, cells left out" if header.get("quick") else "no"),
        ("machine", _machine(host)),
        ("system", host.get("system")),
        ("CPUs", _cpus(host)),
        ("engine", header.get("engine")),
        ("bounds", _bounds(bounds)),
        ("limits", "; ".join(f"{n}: {v}" for n, v in (header.get("limits") or {}).items())),
        ("versions", ", ".join(f"{n} {v}" for n, v in (header.get("versions") or {}).items())),
        *_authentication(report),
        *_old_stacks(report),
        *_shared_layers(report),
    ]
    known = [entries(name, str(value or NO_VALUE)) for name, value in rows]
    return [Table(columns("condition", "value"), known), *warnings(report)]


def _authentication(report: Report) -> list[tuple[str, str]]:
    """Return the authentication of new connections, which takes round trips; empty if unknown."""
    found = report.header.get("postgres_auth")
    return [("Postgres authentication", str(found))] if found else []


def _old_stacks(report: Report) -> list[tuple[str, str]]:
    """Return each old stack's report about itself."""
    said: dict[str, dict[str, list[str]]] = {}
    for run in report.runs:
        facts = run.legacy or {}
        stack = said.setdefault(facts["stack"], {}) if facts.get("stack") else {}
        for name in _OF_STACK:
            known = stack.setdefault(name, [])
            if facts.get(name) is not None and str(facts[name]) not in known:
                known.append(str(facts[name]))
    return [(f"old stack {stack}", _facts(facts)) for stack, facts in said.items()]


def _shared_layers(report: Report) -> list[tuple[str, str]]:
    """Return what shared the CPU of the channel layer's Redis, except for the server alone."""
    found: dict[str, list[str]] = {}
    for run in report.runs:
        whose = (run.legacy or {}).get(_SHARED_LAYER)
        if whose and whose != "the server" and run.name not in found.setdefault(whose, []):
            found[whose].append(run.name)
    return [(f"the layer's Redis shares its CPU with {w}", ", ".join(n)) for w, n in found.items()]


# The facts that distinguish old stacks; the others are in the cells.
_OF_STACK = ("python", "django", "asgiref", "channels", "server", "layer", "thread_sensitive")
_SHARED_LAYER = "layer_cpus_shared_with"


def _facts(facts: dict[str, list[str]]) -> str:
    return ", ".join(f"{name} {' and '.join(values)}" for name, values in facts.items() if values)


def _machine(host: dict[str, object]) -> str:
    memory = host.get("memory_bytes")
    parts = [host.get("model"), f"{host.get('cpus', '?')} CPUs"]
    if isinstance(memory, int | float):
        parts.append(f"{memory / 2**30:.1f} GiB of memory")
    return ", ".join(str(part) for part in parts if part)


def _cpus(host: dict[str, object]) -> str:
    if host.get("shared_cpus"):
        return "shared: the target and the load generator ran on the same ones"
    return f"pinned: target on {host.get('target_cpus')}, load on {host.get('load_cpus')}"


def _bounds(bounds: dict[str, float]) -> str:
    if not bounds:
        return NO_VALUE
    return (
        f"p95 {bounds['p95_ms']:,.0f} ms, errors {100 * bounds['error_ratio']:g} %, "
        f"{100 * bounds['achieved_ratio']:g} % of the requests that are due answered"
    )


def definition(report: Report) -> list[Block]:
    text = report.header.get("definition")
    return [Code(str(text))] if text else []


HOW_TO_READ = [
    "Goodput: successful responses within the limit per second, in the best window of 5 s. "
    "Requests/s also count late and failed responses.",
    "Broke at: the highest sustained rate when three windows in a row exceeded a limit: p95, "
    "errors, or too few responses for the requests that were due. Results of format 4 and older "
    "have the arrival rate of the first of those windows, which is higher.",
    "Limited by target: the measured system was the limit.",
    "Limited by generator: the load generator's CPUs were full. The target can sustain at least "
    "this rate, so it is a lower bound (≥).",
    "Limited by VU cap: all virtual users were waiting for responses, so k6 dropped requests. The "
    "rate is a lower bound (≥).",
    "Held: no limit was exceeded in three windows in a row before the load ended. The rate is a "
    "lower bound (≥).",
    "p50, p95, p99: 50 %, 95 % and 99 % of the responses took at most this long.",
    "Bodies built: how often the backend rendered a page from its rows. The protected cache builds "
    "each page once per version.",
    "Compare cells of one run. Results of other hosts, engines and CPUs differ.",
]
