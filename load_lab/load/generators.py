"""Generators that share one load: prepared once, started together, one summary."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Thread
from time import time
from typing import Any

from load_lab.console import step
from load_lab.errors import LabError
from load_lab.load.load import Load
from load_lab.load.process import capture_output, error_message
from load_lab.stack.engine import K6Command

# Files of a run.
SUMMARY, PREPARED = "k6-summary.json", "prepared.json"
# From the moment at which all generators are ready, for the answer to reach each of them.
_LEAD_SECONDS = 1.0


def prepare(command: K6Command, prepared: Path, k6_options: tuple[str, ...]) -> None:
    """Do the work of setup() once, with k6/prepare.js; it writes `prepared` (PREPARED_PATH).

    Raises:
        LabError: the target is not as expected, or the file could not be written.
    """
    flags = ("--quiet", "--log-format", "json")
    with step("Preparing the load, once for all generators"):
        process = capture_output(command, "run", *flags, *k6_options, script="prepare.js")
    if process.returncode or not prepared.exists():
        raise LabError(f"The load could not be prepared: {error_message(process.stderr)}")


@contextmanager
def start_gate(generators: int) -> Iterator[str]:
    """Yield an address that returns the start of the load (Unix time): to all generators at once,
    when each of them has requested it. At the end of the block it returns 503.
    """
    moments: list[float] = []
    barrier = Barrier(generators, action=lambda: moments.append(time() + _LEAD_SECONDS))

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            """Suppress the log."""

        def do_GET(self) -> None:
            try:
                barrier.wait()
                status, body = 200, str(moments[0]).encode()
            except BrokenBarrierError:
                status, body = 503, b"Another generator has ended."
            # A k6 that has ended does not read it.
            with suppress(OSError):
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            barrier.abort()
            server.shutdown()


def part_of_summary(folder: Path, name: str) -> Path:
    """Return the file with the summary of one generator."""
    return folder / f"k6-summary-{name}.json"


def samples_file(folder: Path, name: str) -> Path:
    """Return the file with the samples of one generator."""
    return folder / f"k6-samples{name and '-'}{name}.csv"


def write_merged_summary(load: Load, folder: Path) -> None:
    """Write the summary of the whole load, if any generator left one."""
    parts = {name: part_of_summary(folder, name) for name in load.names}
    merged = merge_summaries(parts, folder / PREPARED)
    if merged:
        (folder / SUMMARY).write_text(json.dumps(merged, indent=2) + "\n")


def merge_summaries(parts: Mapping[str, Path], prepared: Path) -> dict[str, Any] | None:
    """Return the summary of the whole load, from those of its generators by name; None without any.

    A generator that was killed has none; its `requests` are null then. Percentiles of several
    processes can't be computed from theirs, so there are none.
    """
    documents = {
        name: json.loads(path.read_text()) for name, path in parts.items() if path.exists()
    }
    if not documents:
        return None
    summaries = list(documents.values())
    metrics = _merged_metrics([summary["metrics"] for summary in summaries])
    requests = metrics.get("http_reqs")
    if requests:
        requests["values"]["count"] += json.loads(prepared.read_text())["setupRequests"]
    return {
        "lab": _merged_lab([summary["lab"] for summary in summaries]),
        "metrics": metrics,
        "state": summaries[0]["state"],
        "generators": [_part(name, documents.get(name)) for name in parts],
    }


def _part(name: str, document: dict[str, Any] | None) -> dict[str, Any]:
    """Return what the summary says of one generator."""
    if document is None:
        return {"name": name, "requests": None, "started_at_seconds": None, "load_seconds": None}
    lab = document["lab"]
    load = f"http_reqs{{scenario:{lab['scenario']}}}"
    requests = document["metrics"].get(load, {"values": {"count": 0}})["values"]["count"]
    times = {key: lab[key] for key in ("started_at_seconds", "load_seconds")}
    return {"name": name, "requests": requests, **times}


def _merged_lab(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the load: from the first arrival of all generators to their last response."""
    merged = {**parts[0], "generator": 0}
    begun = [part for part in parts if part["started_at_seconds"] is not None]
    if begun:
        start = min(part["started_at_seconds"] for part in begun)
        ends = (part["started_at_seconds"] + (part["load_seconds"] or 0) for part in begun)
        merged |= {"started_at_seconds": start, "load_seconds": max(ends) - start}
    return merged


def _merged_metrics(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    names = {name: part[name] for part in reversed(parts) for name in part}
    return {
        name: {
            **metric,
            "values": _merged_values(
                metric["type"], name, [part[name]["values"] for part in parts if name in part]
            ),
        }
        for name, metric in names.items()
    }


def _merged_values(
    kind: str, name: str, parts: Sequence[dict[str, float | None]]
) -> dict[str, float | None]:
    """Return the values of one metric of k6's summary; `kind` is k6's type of it."""

    def of(key: str) -> list[float]:
        return [value for part in parts if (value := part.get(key)) is not None]

    if kind == "counter":
        return {"count": sum(of("count")), "rate": sum(of("rate"))}
    if kind == "rate":
        passes, fails = sum(of("passes")), sum(of("fails"))
        return {"passes": passes, "fails": fails, "rate": passes / max(passes + fails, 1)}
    if kind == "trend":
        return _merged_trend(parts)
    # The virtual users of all; every other gauge is about the load as a whole.
    merge = sum if name.startswith("vus") else max
    return {key: merge(of(key)) for key in ("value", "min", "max") if of(key)}


def _merged_trend(parts: Sequence[dict[str, float | None]]) -> dict[str, float | None]:
    filled = [part for part in parts if part.get("count")]
    counts = [part["count"] or 0 for part in filled]
    total = sum(counts)
    if not total:
        return {"count": 0}
    weighted = sum((part["avg"] or 0) * count for part, count in zip(filled, counts, strict=True))
    return {
        "count": total,
        "avg": weighted / total,
        "min": min(part["min"] or 0 for part in filled),
        "max": max(part["max"] or 0 for part in filled),
    }
