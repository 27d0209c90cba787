"""The `lab` command with the docker engine; runs after the tests of compose."""

import os
import threading

import httpx
import pytest

from load_lab.load.load import new_testid
from load_lab.metrics.queries import heartbeat, one_run


def test_up_reports_running_services_and_settings(up):
    assert up["engine"] == "docker"
    assert {s["state"] for s in up["services"]} == {"running"}
    assert up["settings"]["LAB_NGINX_CACHE"] == "off"
    assert "note" not in up["settings"]


def test_set_switches_every_layer(lab_on_docker, up, target):
    result = lab_on_docker("set", "--preset", "best", "--json")
    assert result.code == 0, result.err
    assert result.json["settings"]["LAB_REDIS_CACHE"] == "versioned"
    statuses = [httpx.get(f"{target}/api/hotel/").headers["X-Cache-Status"] for _ in range(2)]
    assert statuses == ["MISS", "HIT"]


@pytest.mark.core
def test_load_is_measured_from_start_to_end(lab_on_docker, up):
    flags = ("--scenario", "list", "--rate", "30", "--duration", "12s", "--json")
    result = lab_on_docker("k6", "breakpoint", *flags)
    assert result.code == 0, result.err
    assert result.json["failed"] == 0
    assert result.json["goodput"] > 5


def test_load_without_alloy_finishes_and_reports_missing_data(
    lab_on_docker, up, stack, prometheus, poll
):
    if "alloy" in stack.missing:
        pytest.skip(f"without alloy: {stack.missing['alloy']}")
    testid = new_testid("no-alloy")
    flags = ("--scenario", "list", "--rate", "20", "--duration", "20s", "--testid", testid)
    results = []
    run = threading.Thread(
        target=lambda: results.append(lab_on_docker("k6", "hold", *flags, "--json"))
    )
    run.start()
    beats = f"count_over_time({heartbeat(one_run(testid))}[1m])"
    try:
        poll(lambda: (prometheus.instant(beats) or 0) > 3, seconds=60)
        stack.compose("kill", "alloy")
    finally:
        run.join()
        assert lab_on_docker("up").code == 0
    assert results[0].code == 1, results[0].err
    completeness = results[0].json["recorded"]
    assert completeness["k6"] > completeness["prometheus"]
    assert completeness["seconds_missing"] > 3
    assert results[0].json["requests"] >= 400


def test_ramp_stops_early_by_signal_to_its_container(lab_on_docker, up):
    flags = ("--scenario", "list", "--rate", "10", "--duration", "60s", "--p95", "1ms", "--json")
    result = lab_on_docker("k6", "breakpoint", *flags)
    assert result.code == 0, result.err
    assert result.json["outcome"] == "broke"
    assert 10 <= result.json["stopped_after"] < 40
    assert result.json["failed"] == 0


def test_variants_are_compared_in_turns(lab_on_docker, up):
    before = lab_on_docker("status", "--json").json["settings"]
    uncached = "LAB_DETAIL=naive,LAB_LOCAL_CACHE=off,LAB_NGINX_CACHE=off,LAB_REDIS_CACHE"
    variants = (f"{uncached}=off", f"{uncached}=versioned")
    result = lab_on_docker("compare", *variants, "--budget", "150s", "--json")
    assert result.code == 0, result.err
    assert result.json["how"] == "in turns"
    assert lab_on_docker("status", "--json").json["settings"] == before
    blocks = [block for block in result.json["blocks"] if not block["control"]]
    assert blocks
    # Pages from Redis need less of the whole target, Postgres included.
    assert all(0.05 < block["ratio"] < 0.9 for block in blocks)
    commit = lab_on_docker("compare", "HEAD", ".")
    assert commit.is_one_message(2)
    assert "native engine" in commit.err


def test_bottleneck_is_seen_inside_the_containers(lab_on_docker, up):
    if os.geteuid() != 0:
        pytest.skip("only root sees the connections and threads in containers")
    caches = ("LAB_NGINX_CACHE=off", "LAB_REDIS_CACHE=off", "LAB_LOCAL_CACHE=off")
    assert lab_on_docker("set", "LAB_LATENCY_MS=50", "LAB_DETAIL=fast", *caches).code == 0
    flags = ("--scenario", "detail", "--rate", "40", "--duration", "30s", "--p95", "2s")
    try:
        result = lab_on_docker("k6", "breakpoint", *flags, "--json")
    finally:
        assert lab_on_docker("set", "LAB_LATENCY_MS=0", "LAB_DETAIL=naive").code == 0
    assert result.code == 0, result.err
    found = result.json["bottleneck"]
    assert found["cause"] == "worker slots", found
    # Postgres's sessions are seen: they are idle, so the time is spent on the way to it.
    assert "the network to Postgres" in found["headline"]
    assert result.json["unseen_signals"] == []


def test_profile_includes_workers_in_their_container(lab_on_docker, up):
    result = lab_on_docker("profile", "--duration", "8s", "--json")
    assert result.code == 0, result.err
    assert len(result.json["hottest"]) == 10


def test_database_answers_and_reports_errors(engine):
    assert engine.sql("hotel", "SELECT count(*) FROM hotels_hotel") == ["4"]
    from load_lab.errors import LabError

    with pytest.raises(LabError, match="Postgres rejected the command"):
        engine.sql("hotel", "SELECT nonsense")


def test_what_a_killed_proof_set_in_postgres_ends_with_the_next_up(lab_on_docker, engine, poll):
    engine.sql("postgres", "ALTER SYSTEM SET synchronous_commit = off", "SELECT pg_reload_conf()")
    poll(lambda: engine.sql("postgres", "SHOW synchronous_commit") == ["off"], seconds=10)
    assert lab_on_docker("up").code == 0
    poll(lambda: engine.sql("postgres", "SHOW synchronous_commit") == ["on"], seconds=10)


def test_versions_limits_and_pids_come_from_the_stack(engine):
    assert set(engine.versions()) >= {"postgres", "redis", "nginx", "prometheus", "k6"}
    assert "unknown" not in engine.versions().values()
    assert "memory" in engine.limits()["backend"]
    assert set(engine.pids()) >= {"postgres", "backend", "nginx"}


def test_logs_reject_unknown_service(lab_on_docker, up):
    assert lab_on_docker("logs", "backend").code == 0
    result = lab_on_docker("logs", "nonsense")
    assert result.is_one_message(2)
    assert "Known: " in result.err
