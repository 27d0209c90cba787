"""The options that commands share, each declared once, and how a command prints its result."""

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from load_lab import load, paths
from load_lab.errors import UsageError

if TYPE_CHECKING:
    from load_lab.stack.engine import Engine

# Its members are files, which mypy can't know.
_PRESETS = sorted(path.stem for path in paths.PRESETS.glob("*.env"))
Preset = StrEnum("Preset", _PRESETS)  # type: ignore[misc]


ExportFormat = StrEnum("ExportFormat", ["csv", "md", "json"])


def _experiments(incomplete: str) -> list[str]:
    folders = (paths.EXPERIMENTS, paths.OWN_EXPERIMENTS)
    files = (path for folder in folders for path in folder.glob("*.toml"))
    return _with_prefix(incomplete, (path.stem for path in files))


def _runs(incomplete: str) -> list[str]:
    return _with_prefix(incomplete, (path.stem for path in paths.project().results.glob("[!.]*")))


def _targets(incomplete: str) -> list[str]:
    return _with_prefix(incomplete, (path.stem for path in paths.project().targets.glob("*.toml")))


def _with_prefix(incomplete: str, names: Any) -> list[str]:
    return sorted(name for name in names if name.startswith(incomplete))


Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Profile = Annotated[load.Profile, typer.Argument(help="How arrivals grow: lab list profiles.")]
Scenario = Annotated[
    load.Scenario | None,
    typer.Option(help="Which requests arrive: lab list scenarios. Default: journey."),
]
ApiScenario = Annotated[load.ApiScenario, typer.Option(help="Which requests arrive.")]
Rate = Annotated[
    int | None,
    typer.Option(min=1, help="Arrival rate per second; of a ramp or spike, the highest."),
]
StartRate = Annotated[
    float | None,
    typer.Option(min=0.1, help="First arrival rate per second of breakpoint-geometric."),
]
Duration = Annotated[str | None, typer.Option(help="Length of the load: 90s, 5m or 1h30m.")]
VirtualUsers = Annotated[
    int | None, typer.Option(min=1, help="Virtual users of smoke, closed and closed-ramp.")
]
Route = Annotated[str | None, typer.Option(help="Route of --scenario workbench: io_read, hello, …")]
Connections = Annotated[
    int | None, typer.Option(min=1, help="Open WebSockets of --scenario availability.")
]
Retries = Annotated[
    int | None, typer.Option(min=0, help="Retries per failed request of --scenario workbench.")
]
TestId = Annotated[
    str | None, typer.Option(help="Name of the run. Default: profile, time, four digits.")
]
Generators = Annotated[
    int, typer.Option(min=1, max=1000, help="How many k6 processes share the load.")
]
Samples = Annotated[
    bool,
    typer.Option(
        "--samples", help="Write the duration of each request to a file, for exact percentiles."
    ),
]
Place = Annotated[
    load.Place, typer.Option("--on", help="Where k6 runs: here, or as pods of k6-operator.")
]
Context = Annotated[
    str, typer.Option(help="Context of kubectl, for --on kubernetes. Default: the current one.")
]
P95 = Annotated[str, typer.Option("--p95", help="Limit on p95 response time, such as 300ms.")]
Errors = Annotated[str, typer.Option("--errors", help="Limit on failed requests, such as 1%.")]
MinAchieved = Annotated[
    str, typer.Option(help="Limit on answered requests, of the due ones, such as 95%.")
]
Budget = Annotated[str, typer.Option(help="No load begins later than this: 2m or 10m.")]
Precision = Annotated[str, typer.Option(help="How narrow the answer must be, such as 5%.")]
EarlyStop = Annotated[
    bool,
    typer.Option("--early-stop/--no-early-stop", help="Stop a breakpoint soon after the break."),
]
Quick = Annotated[bool, typer.Option("--quick", help="Shorter loads: a preview, not a result.")]
Repeats = Annotated[
    int | None,
    typer.Option(
        "--repeats",
        "--repeat",
        min=1,
        max=100,
        help="Repeats; of an experiment with claims: of the cells that decide them.",
    ),
]
ExperimentName = Annotated[
    str,
    typer.Argument(
        help="An experiment (lab list experiments), or the path of a .toml file.",
        autocompletion=_experiments,
    ),
]
Run = Annotated[str, typer.Argument(help="A run: lab list runs.", autocompletion=_runs)]
RunOrCell = Annotated[
    str,
    typer.Argument(
        help="A run (lab list runs), or an experiment's cell: RUN/CELL.", autocompletion=_runs
    ),
]
AfterRun = Annotated[
    str | None,
    typer.Option(
        "--after",
        metavar="TESTID",
        help="Profile the operation that exceeded a limit first in this run, alone.",
        autocompletion=_runs,
    ),
]
NewestRun = Annotated[
    str | None,
    typer.Argument(
        help="A run (lab list runs), or an experiment's newest. Default: the newest experiment.",
        autocompletion=_runs,
    ),
]
Export = Annotated[
    tuple[ExportFormat, Path] | None,
    typer.Option(help="Also write the metrics to a file: --export csv metrics.csv"),
]
Only = Annotated[
    str | None, typer.Option(help="Operations of --target to send: 'GET /api/orders/*'.")
]
Speed = Annotated[
    float | None, typer.Option(min=0.01, max=1000, help="How much faster than the log: times.")
]
Target = Annotated[
    str | None,
    typer.Option(
        help="A target of your own (lab list targets). Default: the reference app.",
        autocompletion=_targets,
    ),
]
YesLoad = Annotated[
    str | None,
    typer.Option(metavar="HOST", help="Allow load on this host, which is not on your network."),
]
OpenPage = Annotated[bool, typer.Option("--open", help="Open the report in the browser.")]
K6Options = Annotated[
    list[str] | None, typer.Argument(help="After --: options of k6 run, such as --http-debug.")
]


def current_engine() -> "Engine":
    """Return the engine of the running stack, or the one that `lab up` would start."""
    from load_lab.settings import load_settings
    from load_lab.stack.choice import choose_engine

    return choose_engine(load_settings())


def check_duration(duration: str) -> float:
    """Return the seconds of `--duration`; see `seconds_of`."""
    return seconds_of("--duration", duration)


def seconds_of(option: str, text: str) -> float:
    """Return the seconds of a duration.

    Raises:
        UsageError: the text is none.
    """
    from lab_settings import durations

    if not re.fullmatch(durations.PATTERN, text):
        raise UsageError(f"{option} {text} is not a duration. Write it like 300ms, 20s or 5m.")
    return durations.seconds(text)


def p95_seconds(text: str) -> float:
    """Return the seconds of `--p95`.

    Raises:
        UsageError: it is no duration, or none that k6's scripts accept.
    """
    seconds = seconds_of("--p95", text)
    if not 0.001 <= seconds <= 3600:
        raise UsageError(f"--p95 {text} is out of range: 1ms to 60m, such as 300ms.")
    return seconds


def share_of(option: str, text: str) -> float:
    """Return a percentage as a share: 1% is 0.01.

    Raises:
        UsageError: the text is none, or out of range.
    """
    match = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{1,6})?) ?%", text)
    if not match or not 0 <= float(match[1]) < 100:
        raise UsageError(f"{option} {text} is not a percentage below 100. Write it like 1%.")
    return float(match[1]) / 100


def whole_seconds(duration: str, minimum: int, maximum: int) -> int:
    """Return the seconds of `--duration`.

    Raises:
        UsageError: it is not a duration, or out of range.
    """
    seconds = check_duration(duration)
    if not minimum <= seconds <= maximum or seconds != int(seconds):
        raise UsageError(
            f"--duration {duration} is out of range. It takes whole seconds, {minimum}s to "
            f"{maximum}s."
        )
    return int(seconds)


def print_result(document: dict[str, Any], as_json: bool, render: Any) -> None:
    """Print the result: one JSON document, or what `render` makes of it."""
    from load_lab.console import out, print_json

    if as_json:
        print_json(_compact(document))
    else:
        out.print(render(document))


def _compact(document: dict[str, Any]) -> dict[str, Any]:
    """Leave the series of each second to the file that `files` names."""
    from load_lab.results.result import without_series

    loads = {
        name: [without_series(load) for load in document[name]]
        for name in ("rungs", "arms")
        if name in document
    }
    return without_series(document) | loads
