"""Each error ends in one message: what happened, which value was found, and what to do."""

import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from load_lab.load.load import new_testid
from load_lab.metrics import queries
from load_lab.metrics.prometheus import Prometheus
from load_lab.paths import ROOT, State
from load_lab.stack.native.supervision import wait_for


def test_port_conflict_is_reported_before_any_start(lab, second_stack):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", int(second_stack["LAB_HTTP_PORT"])))
        listener.listen()
        result = lab("up", **second_stack)
    assert result.is_one_message(1)
    assert f"port {second_stack['LAB_HTTP_PORT']} (LAB_HTTP_PORT)" in result.err
    assert "Nothing was started" in result.err


@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount a small disk to fill")
def test_full_disk_is_reported_before_any_start(lab, second_stack, tmp_path):
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=50m", "tmpfs", str(tmp_path)], check=False
    )
    if mount.returncode:
        pytest.skip("this sandbox may not mount a small disk to fill")
    try:
        result = lab("up", **{**second_stack, "LAB_STATE_DIR": str(tmp_path)})
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
    assert result.is_one_message(1)
    assert "0.1 GB free" in result.err
    assert "Make room" in result.err


def test_broken_cluster_is_reported_with_the_end_of_its_log(lab, prepared_stack):
    (State(Path(prepared_stack["LAB_STATE_DIR"])).postgres / "PG_VERSION").write_text("9.6\n")
    result = lab("up", **prepared_stack)
    assert result.is_one_message(1)
    assert "postgres did not start" in result.err
    assert "9.6" in result.err


def test_invalid_setting_in_the_shell_is_a_usage_error(lab):
    result = lab("up", LAB_SERVER="apache")
    assert result.is_one_message(2)
    assert "LAB_SERVER=apache is invalid. Allowed: gunicorn-sync, gunicorn-gthread" in result.err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("k6", "stress"), "'smoke', 'breakpoint'"),
        (("k6", "hold", "--scenario", "checkout"), "'journey', 'list', 'detail', 'booking'"),
        (("k6", "smoke", "--rate", "5"), "RATE"),
        (("capacity", "--p95", "fast"), "--p95 fast is not a duration. Write it like 300ms"),
        (("capacity", "--p95", "0ms"), "--p95 0ms is out of range: 1ms to 60m, such as 300ms"),
        (("capacity", "--p95", "0.3ms"), "--p95 0.3ms is out of range"),
        (("capacity", "--p95", "2h"), "--p95 2h is out of range"),
        (("capacity", "--p95", "2m"), "is not below LAB_CLIENT_TIMEOUT=60 s"),
        (("capacity", "--errors", "0.01"), "--errors 0.01 is not a percentage below 100"),
        (("capacity", "--errors", "100%"), "--errors 100% is not a percentage below 100"),
        (("capacity", "--budget", "10s"), "--budget 10s is too short for an answer"),
        (("capacity", "--precision", "half"), "--precision half is not a percentage"),
        (("capacity", "--target", "shop"), "shop"),
        (("k6", "hold", "--duration", "soon"), "--duration soon is not a duration"),
        (("k6", "hold", "--rate", "0"), "--rate"),
        (("k6", "smoke", "--testid", "../x"), "can't name a run"),
        (("logs", "mysql"), "nginx"),
        (("fly",), "fly"),
    ],
)
def test_invalid_arguments_are_usage_errors(lab, stack, argv, message):
    result = lab(*argv)
    assert result.is_one_message(2)
    assert message in result.err


def test_k6_environment_variables_in_the_shell_are_rejected(lab, stack):
    result = lab("k6", "smoke", K6_VUS="5")
    assert result.is_one_message(2)
    assert "K6_VUS" in result.err


def test_another_target_in_the_shell_is_rejected(lab, stack):
    result = lab("k6", "smoke", BASE_URL="http://127.0.0.1:8000")
    assert result.is_one_message(2)
    assert "BASE_URL=http://127.0.0.1:8000 is set" in result.err


@pytest.mark.parametrize("argv", [("k6", "smoke"), ("set", "LAB_DETAIL=fast")])
def test_commands_without_running_stack_report_how_to_start_it(lab, second_stack, argv):
    result = lab(*argv, **second_stack)
    assert result.is_one_message(1)
    assert "lab up" in result.err


def test_load_that_is_too_short_is_not_evaluated(lab, stack):
    result = lab("k6", "hold", "--rate", "2", "--duration", "3s", "--scenario", "list")
    assert result.is_one_message(1)
    assert "too short to judge" in result.err
    assert "--duration 7s" in result.err


def test_data_created_with_other_secrets_is_reported(lab, prepared_stack):
    secrets = State(Path(prepared_stack["LAB_STATE_DIR"])).secrets
    (secrets / "postgres_password").write_text("another" * 10)
    result = lab("up", **prepared_stack)
    assert result.is_one_message(1)
    assert "another password" in result.err


def test_missing_data_is_reported_before_k6_starts(lab, stack):
    rename = stack.exec("backend", [sys.executable, "-c", _RENAME_HOTELS.format("hide")])
    assert rename.returncode == 0, rename.stderr
    try:
        result = lab("k6", "smoke")
    finally:
        stack.exec("backend", [sys.executable, "-c", _RENAME_HOTELS.format("restore")])
    assert result.is_one_message(1)
    assert "load_db" in result.err


# Empties the table temporarily without losing a row.
_RENAME_HOTELS = """
import django, os
os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
django.setup()
from django.db import connection, transaction
with transaction.atomic(), connection.cursor() as cursor:
    if "{0}" == "hide":
        cursor.execute("ALTER TABLE hotels_hotel RENAME TO hotels_backup")
        cursor.execute("CREATE TABLE hotels_hotel (LIKE hotels_backup)")
    else:
        cursor.execute("DROP TABLE hotels_hotel")
        cursor.execute("ALTER TABLE hotels_backup RENAME TO hotels_hotel")
"""


def test_target_failure_during_a_test_is_no_break_point(lab, stack):
    testid = new_testid("down")
    prometheus = Prometheus(stack.settings().prometheus_url)

    def stop_backend():
        query = queries.requests(queries.load(queries.one_run(testid)))
        wait_for(lambda: prometheus.instant(query), seconds=60, what="The load's first answer")
        stack._supervision._call("stopProcess", "backend")

    stopper = threading.Thread(target=stop_backend)
    stopper.start()
    flags = ("--rate", "20", "--duration", "10s", "--scenario", "list", "--testid", testid)
    result = lab("k6", "hold", *flags)
    stopper.join()
    assert lab("up").code == 0
    assert result.is_one_message(1)
    assert "went down during the test (not running: backend)" in result.err
    assert "results/" in result.err


def _runs_k6(pid):
    # `k6 inspect` may end while it is looked at.
    with suppress(psutil.NoSuchProcess):
        children = psutil.Process(pid).children(recursive=True)
        return any(child.name() == "k6" and "run" in child.cmdline() for child in children)
    return False


@pytest.mark.parametrize(
    ("scenario", "moment"),
    [
        ("list", "load"),
        ("booking", "start"),
        pytest.param("list", "start", marks=pytest.mark.full),
        pytest.param("booking", "load", marks=pytest.mark.full),
    ],
)
def test_ctrl_c_during_a_test_preserves_the_k6_summary(stack, scenario, moment):
    process = subprocess.Popen(
        [str(Path(sys.executable).parent / "lab"), *("k6", "hold", "--scenario", scenario)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    if moment == "load":
        assert any("the load begins" in line for line in process.stderr)
    else:
        wait_for(lambda: _runs_k6(process.pid), seconds=30, what="k6")
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=90)
    assert process.returncode == 1
    assert "Traceback" not in err
    assert "interrupted" in err
    folder = Path(err.rsplit("is in ", 1)[1].strip().rstrip("."))
    assert (folder / "k6-summary.json").exists()


def test_outdated_python_is_reported(tmp_path):
    fake = tmp_path / "python3"
    fake.write_text("#!/bin/sh\nexit 1\n")
    fake.chmod(0o755)
    argv = ["native/make-venv.sh", str(fake)]
    result = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert "Python is too old" in result.stderr


def test_missing_program_is_reported_with_the_install_command():
    code = "from load_lab.stack.native.program_paths import require; require('no-such-program')"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert "Run `make setup`" in result.stderr
