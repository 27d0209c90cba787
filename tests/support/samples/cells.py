"""Cells of a synthetic ladder: the format of real runs (a ramp that breaks at a known rate),
without randomness.
"""

import math
from typing import Any

from lab_settings.declaration import defaults

CODES = {"naive": "nested serializers", "fast": "values() and orjson"}
LAYERS = {
    "none": "no cache",
    "local": "local memory of each worker",
    "redis-page": "Redis, cache_page(600)",
    "redis-versioned": "Redis, versioned bytes",
    "nginx-basic-cold": "Nginx as in the article, cold",
    "nginx-basic-smoke": "Nginx as in the article, warmed by the smoke test",
    "nginx-basic-stage": "Nginx as in the article, warmed by a stage",
    "nginx-protected-cold": "Nginx protected, cold",
    "nginx-protected-warm": "Nginx protected, warm",
}
LOADS = {
    "detail": "one hotel",
    "list": "the list of hotels",
    "booking": "a booking",
    "article": "the article's journey",
}
# Break points (requests/s) and service times (ms) of naive detail, by layer.
BREAKS = (1.9, 24, 61, 204, 330, 700, 1210, 1380, 1523)
FIRST_MS = (480, 60, 30, 9, 12, 5, 3, 3, 2)
CPU = {
    "none": {"backend": 0.74, "postgres": 0.22, "nginx": 0.01, "redis": 0.0, "prometheus": 0.02},
    "redis": {"backend": 0.78, "postgres": 0.05, "nginx": 0.05, "redis": 0.08, "prometheus": 0.02},
    "nginx": {"backend": 0.12, "postgres": 0.03, "nginx": 0.61, "redis": 0.0, "prometheus": 0.03},
}
SETTINGS = {
    **defaults(),
    "LAB_SERVER": "gunicorn-sync",
    "LAB_WORKERS": "2",
    "LAB_BOOKING": "naive",
    "LAB_NGINX_CACHE_TTL": "1s",
    "LAB_SHED": "off",
}
FACTOR = {"detail": 1, "list": 3.1, "booking": 22, "article": 6}
STARTED = 1_795_254_900


def cell(name: str, *, repeat: int = 1, limited_by: str = "target", scale: float = 1.0):
    code, layer, load = name.split("/")
    index = list(LAYERS).index(layer)
    if index == 8 and limited_by == "target" and load in ("detail", "list"):
        limited_by = "generator_cpu"
    windows = ramp(_breaks_at(code, index, load, scale), FIRST_MS[index], index)
    break_window = next(w for w in windows if w["broken"])
    requests = int(sum(w["achieved"] for w in windows))
    failed = int(sum(w["achieved"] * w["error_ratio"] for w in windows))
    best = max(w["goodput"] for w in windows)
    cpu = CPU["nginx" if "nginx" in layer else "redis" if "redis" in layer else "none"]
    busy = 0.97 if limited_by == "generator_cpu" else 0.31
    return {
        "schema_version": 1,
        "name": name,
        "repeat": repeat,
        "title": f"{CODES[code]}, {LAYERS[layer]}, {LOADS[load]}",
        "axes": {"code": code, "layer": layer, "load": load},
        "settings": _settings(code, layer),
        "workload": {"profile": "breakpoint", "scenario": load, "rate": 10, "duration": "30s"},
        "warm": {"profile": "smoke", "scenario": "journey"} if layer.endswith("smoke") else "none",
        "state": "measured",
        "error": None,
        "started": "2026-11-21T10:15:10+00:00",
        "seconds": 48.1,
        "testid": f"breakpoint-{repeat}",
        "requests": requests,
        "successes": requests - failed,
        "rps": round(requests / 30, 2),
        "goodput": best,
        "goodput_mean": round(best / 2, 2),
        "failed": failed,
        "failed_ratio": round(failed / requests, 4) if requests else 0.0,
        "p50_ms": float(FIRST_MS[index] * 2),
        "p95_ms": max(w["p95_ms"] or 0 for w in windows),
        "p99_ms": round(1.1 * max(w["p95_ms"] or 0 for w in windows), 1),
        "dropped_iterations": 140 if limited_by == "vu_cap" else 0,
        "outcome": "broke",
        "limited_by": limited_by,
        "verdict": f"broke at {break_window['offered']:.1f} requests/s",
        "break_point": {
            "rate": break_window["offered"],
            "offered": break_window["offered"],
            "goodput": best,
            "seconds_into_test": break_window["end"],
            "reasons": break_window["broken"],
            "target_cpu": 0.97,
            "generator_cpu": busy,
        },
        "builds": {"hotel_detail": 20 if index else requests, "hotel_list": 1},
        "cache": _cache(layer, requests),
        "services_cpu": cpu,
        "prometheus": {"start": STARTED, "end": STARTED + 30, "queries": {}},
        "windows": windows,
        "cpu": [
            {"at": STARTED + s, "target": 0.9, "load": busy, "services": cpu}
            for s in range(0, 30, 10)
        ],
        "series": {},
    }


def _breaks_at(code: str, index: int, load: str, scale: float) -> float:
    factor = 1.4 if code == "fast" else 1
    if load in ("booking", "article") and index > 0:
        return BREAKS[0] * FACTOR[load] * (1 + index / 3) * factor
    rate = BREAKS[index] * FACTOR[load] * (30 if code == "fast" and index == 0 else 1)
    return rate * factor * scale


def _settings(code: str, layer: str) -> dict[str, str]:
    return {
        **SETTINGS,
        "LAB_DETAIL": code,
        "LAB_LOCAL_CACHE": "lru" if layer == "local" else "off",
        "LAB_REDIS_CACHE": layer.removeprefix("redis-") if "redis" in layer else "off",
        "LAB_NGINX_CACHE": layer.split("-")[1] if "nginx" in layer else "off",
    }


def _cache(layer: str, requests: int) -> dict[str, dict[str, int]]:
    if "nginx" in layer:
        miss = 20 if "warm" in layer or "stage" in layer else requests // 4
        stale = requests // 10 if "protected" in layer else 0
        expired = 0 if stale else requests // 20
        hit = requests - miss - stale - expired
        return {"nginx": {"HIT": hit, "MISS": miss, "EXPIRED": expired, "STALE": stale, "NONE": 0}}
    if "redis" in layer:
        return {"redis": {"hit": requests - 20, "miss": 20, "unavailable": 0}}
    return {"local": {"hit": requests - 40, "miss": 40}} if layer == "local" else {}


def ramp(break_rate: float, first_ms: float, index: int) -> list[dict[str, Any]]:
    """Return the windows of a ramp to twice the break point `at` in 30 s; answers are then late."""
    windows = []
    for end in range(5, 31):
        offered = 2 * break_rate * (end - 2.5) / 30
        load = offered / break_rate
        variation = 1 + 0.06 * math.sin(end * (1 + index))
        p95 = first_ms * 2 * variation / max(1.02 - load, 0.02) if load < 1 else 1160 * load**3
        p95 = max(p95, 1160) if load >= 1 else min(p95, 980)
        good = offered if load < 1 else max(break_rate * (1 - 1.6 * (load - 1)) * variation, 0)
        errors = max(0.0, min(1.0, 0.3 * (load - 1.3))) if index != 7 else 0.0
        broken = [f"p95 {p95:,.0f} ms > 1000 ms"] if p95 > 1000 else []
        windows.append(
            {
                "end": float(end),
                "offered": round(offered, 3),
                "due": round(offered * 0.95, 3),
                "achieved": round(min(offered, break_rate * 1.05), 2),
                "goodput": round(good * 0.98, 2),
                "error_ratio": round(errors, 4),
                "dropped": 0.0,
                "p95_ms": round(p95, 1) if end > 6 else None,
                "broken": broken,
            }
        )
    return windows


def failed(name: str, error: str) -> dict[str, Any]:
    document = cell(name)
    names = ("schema_version", "name", "repeat", "title", "axes", "settings", "workload", "warm")
    fields = {key: document[key] for key in names}
    return {**fields, "state": "failed", "error": error, "seconds": 7.5}
