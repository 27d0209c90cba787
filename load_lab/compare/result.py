"""The document of a comparison: what `lab compare` stores, prints and draws."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from statistics import fmean
from typing import Any

import numpy as np

from load_lab.compare.blocks import Block, CompareOptions, Session
from load_lab.compare.cost import BlockLoad, Side
from load_lab.compare.ratios import judge
from load_lab.metrics.counters import add, quantile
from load_lab.results.provenance import SCHEMA_VERSION, host
from load_lab.results.ratio import Ratio
from load_lab.settings import Settings
from load_lab.targets.subject import Variant

_QUANTILES = tuple(share / 100 for share in (1, 5, *range(10, 91, 10), 95, 99))
_TIMES = ("cpu_ms", "statements_ms", "p50_ms", "p95_ms", "p99_ms")
_METRICS = (*_TIMES, "memory_bytes")


def head_of(engine_name: str, base: Settings, options: CompareOptions) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "a": _variant(options.a),
        "b": _variant(options.b),
        "is_control": options.is_control,
        "scenario": options.scenario or "mix",
        "threshold": options.threshold,
        "budget_seconds": options.budget,
        "settings": base.model_dump(),
        "host": host(base, engine_name),
    }


def _variant(variant: Variant) -> dict[str, Any]:
    changes = variant.changes
    return {
        "name": variant.name,
        "settings": [f"{name}={value}" for name, value in (changes.options | changes.env).items()],
        "commit": changes.git,
    }


def document_of(
    head: dict[str, Any], session: Session, load: BlockLoad, seconds: float
) -> dict[str, Any]:
    ratios = {name: session.ratio(name) for name in _METRICS}
    return {
        **head,
        "verdict": session.verdict,
        "headline": headline(session),
        "judged": session.judged,
        "rate": load.rate,
        "seconds": round(seconds, 1),
        "ratios": {name: _ratio(ratio, session) for name, ratio in ratios.items()},
        "sides": {name: _totals(session.compared, name) for name in "ab"},
        "shared": _shared(session),
        "services": {"counted": session.services[0], "not_counted": session.services[1]},
        "control": [
            round(pair.ratio, 4)
            for pair in session.pairs("cpu_ms", control=not session.options.is_control)
        ],
        "blocks": [_block(block) for block in session.blocks],
        "distributions": {name: _distribution(session.compared, name) for name in "ab"},
    }


def _shared(session: Session) -> dict[str, Any]:
    """Return the CPU time per request of what serves both variants, and what splits it."""
    sides = [side for block in session.blocks for side in (block.a, block.b) if side.shared]
    names = dict.fromkeys(name for side in sides for name in side.shared)
    cpu = {name: fmean(side.shared.get(name, 0.0) for side in sides) for name in names}
    return {
        "cpu_ms": {name: round(ms, 3) for name, ms in cpu.items()},
        "is_split": bool(sides) and all(side.statements_ms is not None for side in sides),
    }


_WORDS = {"cpu_ms": ("needs", "CPU per request"), "p50_ms": ("has", "median response time")}


def headline(session: Session) -> str:
    """Return the answer in one line."""
    options, verdict = session.options, session.verdict
    if (name := session.more_in_b) and not options.is_control:
        return f"slower: {_more_text(session, name)}"
    ratios = {name: session.ratio(name) for name in session.judged}
    deciding = next(
        (name for name, ratio in ratios.items() if judge(ratio, options.threshold) == verdict),
        "cpu_ms",
    )
    ratio = ratios.get(deciding)
    if ratio is None:
        count = len(session.compared)
        return f"can't tell: {count} blocks are too few; use a longer --budget"
    verb, what = _WORDS[deciding]
    value = f"{ratio.ratio:.3g} × the {what} of A ({ratio.low:.3g} to {ratio.high:.3g})"
    percent = f"{options.threshold:.0%}"
    if options.is_control:
        return f"A against A: {value}; this machine can tell {ratio.resolution:.1%} now"
    texts = {
        "slower": f"slower: B {verb} {value}",
        "faster": f"faster: B {verb} {value}",
        "not slower": f"not slower by {percent}: B {verb} {value}",
        "can't tell": f"can't tell (this machine can tell {ratio.resolution:.1%} now): B {verb} "
        f"{value}",
    }
    return texts[verdict]


def _more_text(session: Session, name: str) -> str:
    """Return how many of the requests failed, or were late, of B and of A."""
    totals = {side: _totals(session.compared, side) for side in "ab"}
    shares = {side: one[name] / max(one["requests"], 1) for side, one in totals.items()}
    limit = f"took longer than {session.options.limit_ms:,} ms"
    what = {"failed": "failed", "late": limit}[name]
    return f"{shares['b']:.1%} of B's requests {what}, {shares['a']:.1%} of A's"


def _ratio(ratio: Ratio | None, session: Session) -> dict[str, Any] | None:
    if ratio is None:
        return None
    values = {name: round(getattr(ratio, name), 4) for name in ("ratio", "low", "high")}
    verdict = judge(ratio, session.options.threshold)
    return {**values, "resolution": round(ratio.resolution, 4), "verdict": verdict}


def _totals(blocks: Sequence[Block], name: str) -> dict[str, Any]:
    sides = [getattr(block, name) for block in blocks]
    requests = sum(side.requests for side in sides)
    weighted = {metric: _weighted(sides, metric) for metric in _TIMES}
    memory = [side.memory_bytes for side in sides if side.memory_bytes]
    return {
        **weighted,
        "requests": round(requests),
        "failed": round(sum(side.failed for side in sides)),
        "late": round(sum(side.late for side in sides)),
        "memory_bytes": max(memory, default=None),
    }


def _weighted(sides: Sequence[Side], metric: str) -> float | None:
    """Return the mean per request; None if a block has no value."""
    values = [getattr(side, metric) for side in sides]
    if not sides or None in values:
        return None
    requests = [side.requests for side in sides]
    return round(float(np.average(values, weights=requests)), 3)


def _block(block: Block) -> dict[str, Any]:
    names = ("requests", "failed", "late", *_METRICS)
    return {
        "number": block.number,
        "swapped": block.swapped,
        "control": block.control,
        "ratio": round(block.b.cpu_ms / block.a.cpu_ms, 4) if block.a.cpu_ms else None,
        **{
            side: {name: _rounded(getattr(getattr(block, side), name)) for name in names}
            | {"services": _services(getattr(block, side))}
            for side in "ab"
        },
    }


def _services(side: Side) -> dict[str, float]:
    """Return the CPU time of each service in ms per request, where they were seen by chance."""
    return {name: round(ms, 3) for name, ms in side.services.items()}


def _rounded(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else round(value, 3)


def _distribution(blocks: Sequence[Block], name: str) -> list[dict[str, float]]:
    """Return quantiles of the response times in ms, of all blocks together."""
    histogram = add(getattr(block, name).histogram for block in blocks)
    values = {share: quantile(histogram, share) for share in _QUANTILES}
    return [
        {"share": share, "ms": round(1000 * value, 2)}
        for share, value in values.items()
        if value is not None
    ]
