"""load_db, prepare_db, table_sizes, lab_config and check --deploy."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from config.settings import BASE_DIR
from django.core.management import CommandError, call_command
from hotels.caching.tokens import detail_version, list_version
from hotels.models import Booking, Customer, Hotel, Suite
from hotels.selectors import hotel_detail_fast
from lab_settings.declaration import Declaration
from workbench.models import Post

SMALL = {"hotels": 2, "suites_per_hotel": 3, "bookings_per_suite": 4, "customers": 20}


def _counts():
    return [model.objects.count() for model in (Hotel, Suite, Customer, Booking)]


def _manage(*argv, **environ):
    return _run("python", "manage.py", *argv, **environ)


def _run(*argv, **environ):
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        argv,
        cwd=BASE_DIR,
        env={**os.environ, "PATH": path, **environ},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.django_db(transaction=True)
def test_load_db_is_reproducible_for_a_seed():
    call_command("load_db", seed=1, **SMALL)
    first = [hotel_detail_fast(h.pk) for h in Hotel.objects.order_by("id")]
    call_command("load_db", seed=1, reload=True, **SMALL)
    assert first == [hotel_detail_fast(h.pk) for h in Hotel.objects.order_by("id")]
    call_command("load_db", seed=2, reload=True, **SMALL)
    assert first != [hotel_detail_fast(h.pk) for h in Hotel.objects.order_by("id")]
    assert _counts() == [2, 6, 20, 24]


@pytest.mark.django_db(transaction=True)
def test_load_db_gives_reloaded_rows_new_versions():
    tokens = []
    for reload in (False, True):
        call_command("load_db", seed=1, reload=reload, **SMALL)
        tokens.append([list_version(), *(detail_version(h.pk) for h in Hotel.objects.all())])
    assert not set(tokens[0]) & set(tokens[1])


@pytest.mark.django_db(transaction=True)
def test_second_load_db_is_rejected_and_names_reload():
    call_command("load_db", **SMALL)
    with pytest.raises(CommandError, match="--reload"):
        call_command("load_db", **SMALL)
    assert _counts() == [2, 6, 20, 24]


@pytest.mark.django_db(transaction=True)
def test_failed_load_db_leaves_no_rows(monkeypatch):
    from hotels.data import Data

    monkeypatch.setattr(Data, "bookings", lambda self: iter([((None,) * 5, [])]))
    with pytest.raises(CommandError, match="Nothing was changed"):
        call_command("load_db", **SMALL)
    assert _counts() == [0, 0, 0, 0]


@pytest.mark.django_db(transaction=True)
def test_prepare_db_loads_only_what_is_missing(capsys):
    call_command("load_db", **SMALL)
    call_command("prepare_db")
    assert _counts() == [2, 6, 20, 24]
    assert Post.objects.count() == int(os.environ["LAB_DATA_POSTS"])
    output = capsys.readouterr().out
    assert output.index("Migrating the database") < output.index("The data is already loaded.")


@pytest.mark.django_db(transaction=True)
def test_default_data_has_the_documented_size(api):
    """Two of the twenty hotels: each has its whole size."""
    sizes = {"hotels": 20, "suites_per_hotel": 100, "bookings_per_suite": 45, "customers": 20_000}
    for name, size in sizes.items():
        assert Declaration.model_fields[f"LAB_DATA_{name.upper()}"].default == size
    call_command("load_db", **(sizes | {"hotels": 2}))
    assert _counts() == [2, 200, 20_000, 9_000]
    for hotel in Hotel.objects.all():
        assert 900_000 <= len(hotel_detail_fast(hotel.pk)) <= 1_000_000
    assert 10 * len(api.get("/api/hotel/").content) == pytest.approx(7_000, abs=500)
    assert Booking.objects.filter(check_out__gt="2030-01-01").count() == 0


@pytest.mark.parametrize(
    ("flag", "value"), [("--hotels", "0"), ("--customers", "many"), ("--bookings-per-suite", "-1")]
)
def test_load_db_rejects_invalid_sizes_as_usage_error(stack, flag, value):
    process = _manage("load_db", flag, value)
    assert process.returncode == 2
    assert "a whole number from" in process.stderr
    assert "Traceback" not in process.stderr


@pytest.mark.django_db
def test_table_sizes_are_sorted_largest_first(capsys, suite):
    call_command("table_sizes", json=True)
    tables = json.loads(capsys.readouterr().out)["tables"]
    totals = [table["total_bytes"] for table in tables]
    assert totals == sorted(totals, reverse=True)
    suites = next(t for t in tables if t["table"] == "hotels_suite")
    assert suites["rows"] == 1
    assert suites["table_bytes"] + suites["index_bytes"] == suites["total_bytes"]


@pytest.mark.django_db
def test_table_sizes_prints_a_table(capsys, suite):
    call_command("table_sizes")
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["table", "rows", "table", "indexes", "total"]
    assert any(row.startswith("hotels_booking ") for row in rows)


def test_commands_report_unavailable_postgres(stack):
    process = _manage("table_sizes", PGPORT="1")
    assert process.returncode == 1
    assert "Postgres rejected the command" in process.stderr
    assert "Traceback" not in process.stderr


def test_init_reports_unavailable_postgres(stack):
    process = _run("bin/init", PGPORT="1")
    assert process.returncode == 1
    assert "Postgres's roles can't be created: connection failed" in process.stderr
    assert "Traceback" not in process.stderr


def test_lab_config_prints_active_settings(stack):
    process = _manage("lab_config", "--json", LAB_DB_POOL="7")
    assert json.loads(process.stdout)["LAB_DB_POOL"] == "7"


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [("LAB_DETAIL", "quick", "naive, fast"), ("LAB_DB_POOL", "0", "from 1 to 1000")],
)
def test_invalid_setting_is_one_message_and_usage_error(stack, name, value, allowed):
    process = _manage("lab_config", **{name: value})
    assert process.returncode == 2
    assert f"{name}={value} is invalid" in process.stderr
    assert allowed in process.stderr
    assert "Traceback" not in process.stderr


def test_missing_secret_error_names_the_command(stack, tmp_path):
    process = _manage("lab_config", BACKEND_SECRETS_DIR=str(tmp_path))
    assert process.returncode == 2
    assert "python -m config.secrets" in process.stderr


def test_check_deploy_is_clean(stack):
    process = _manage("check", "--deploy", "--fail-level", "WARNING")
    assert process.returncode == 0, process.stderr


def test_no_migration_is_missing(stack):
    process = _manage("makemigrations", "--check", "--dry-run", LAB_WORKBENCH="on")
    assert process.returncode == 0, process.stdout


@pytest.mark.parametrize(
    ("name", "value"), [("LAB_DATA_HOTELS", "0"), ("LAB_DATA_BOOKINGS_PER_SUITE", "5000")]
)
def test_load_db_validates_sizes_from_the_environment(stack, name, value):
    process = _manage("load_db", **{name: value})
    assert process.returncode == 2
    assert f"{name}={value} is invalid" in process.stderr
