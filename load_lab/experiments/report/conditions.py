"""The conditions of the measurement, and the warnings of the page."""

from load_lab.experiments.report.rows import Report
from load_lab.experiments.run_folder import CellRun
from load_lab.machine.noise import NOISY_SHARE, UNSTEADY_RATIO, extremes
from load_lab.results.blocks import Block, Code, Items, Paragraph, Table, columns, entries
from load_lab.results.formatting import NO_VALUE, quantity, times


def notices(report: Report) -> list[Block]:
    """Return the warnings that a reader needs before the results."""
    texts = (
        _QUICK if report.header.get("quick") else "",
        _state_warning(report) if report.header.get("state") != "finished" else "",
        _SHARED_CPUS if _host(report).get("shared_cpus") else "",
        _noise_warning(report),
        _speed_warning(report),
    )
    return [Paragraph(text, "warning") for text in texts if text]


def _speed_warning(report: Report) -> str:
    """Return a warning if the machine's speed varied much between cells, otherwise ""."""
    speeds = extremes((run.result.cpu_speed, _run_label(run)) for run in report.runs if run.result)
    if not speeds or speeds.ratio < UNSTEADY_RATIO:
        return ""
    return (
        f"UNSTEADY MACHINE: the same piece of work ran {times(speeds.ratio)} as fast around one "
        f"measurement ({speeds.fastest}) as around another ({speeds.slowest}). Where the CPU is "
        "the limit, a difference of that size may be the machine's: repeat it (--repeats)."
    )


def _run_label(run: CellRun) -> str:
    return f"{run.name}, repeat {run.repeat}"


def _noise_warning(report: Report) -> str:
    """Return a warning with the cells that lost CPU time to the hypervisor, otherwise ""."""
    noisy_runs = [
        (run.result.steal, run.name)
        for run in report.runs
        if run.result and run.result.steal >= NOISY_SHARE
    ]
    if not noisy_runs:
        return ""
    steal, name = max(noisy_runs)
    return (
        f"NOISY MACHINE: the hypervisor took {NOISY_SHARE:.0%} of the CPU time or more in "
        f"{quantity(len(noisy_runs), 'measurement')}, {steal:.0%} at most ({name}). Their rates "
        "are lower than the target's own."
    )


_QUICK = (
    "QUICK RUN: durations were scaled down, and cells may have been left out. It shows that the "
    "experiment works; it is a preview, not a result."
)
_SHARED_CPUS = (
    "SHARED CPUs: the target and the load generator ran on the same CPUs and took time from each "
    "other. The rates are lower than the target's capacity."
)


def _state_warning(report: Report) -> str:
    runs = len(report.runs)
    plan_count = len(report.header.get("plan", []))
    state = {"interrupted": "INTERRUPTED", "running": "STILL RUNNING"}.get(
        str(report.header.get("state")), "INCOMPLETE"
    )
    return f"{state}: {runs} of {quantity(plan_count, 'planned measurement')} are in this report."


def warnings(report: Report) -> list[Block]:
    texts = [str(text) for text in report.header.get("warnings", [])]
    return [Items(texts)] if texts else []


def _host(report: Report) -> dict[str, object]:
    host: dict[str, object] = report.header.get("host") or {}
    return host


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
    fields = [entries(name, str(value or NO_VALUE)) for name, value in rows]
    return [Table(columns("condition", "value"), fields), *warnings(report)]


def _authentication(report: Report) -> list[tuple[str, str]]:
    """Return the authentication of new connections, which takes round trips; empty if unknown."""
    method = report.header.get("postgres_auth")
    return [("Postgres authentication", str(method))] if method else []


def _old_stacks(report: Report) -> list[tuple[str, str]]:
    """Return each old stack's report about itself."""
    stacks: dict[str, dict[str, list[str]]] = {}
    for run in report.runs:
        facts = run.legacy or {}
        stack = stacks.setdefault(facts["stack"], {}) if facts.get("stack") else {}
        for name in _STACK_FACTS:
            values = stack.setdefault(name, [])
            if facts.get(name) is not None and str(facts[name]) not in values:
                values.append(str(facts[name]))
    return [(f"old stack {stack}", _facts(facts)) for stack, facts in stacks.items()]


def _shared_layers(report: Report) -> list[tuple[str, str]]:
    """Return what shared the CPU of the channel layer's Redis, except for the server alone."""
    cells: dict[str, list[str]] = {}
    for run in report.runs:
        other = (run.legacy or {}).get(_LAYER_SHARED_WITH)
        if other and other != "the server" and run.name not in cells.setdefault(other, []):
            cells[other].append(run.name)
    return [(f"the layer's Redis shares its CPU with {w}", ", ".join(n)) for w, n in cells.items()]


# The facts that distinguish old stacks; the others are in the cells.
_STACK_FACTS = ("python", "django", "asgiref", "channels", "server", "layer", "thread_sensitive")
_LAYER_SHARED_WITH = "layer_cpus_shared_with"


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
    "errors, or too few responses for the requests that were due.",
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
