"""load_db --workbench, and the workbench while it is off."""

import os
import subprocess
import sys

import pytest
from config.settings import BASE_DIR
from django.core.management import CommandError, call_command
from workbench.data import LOCK_ROWS
from workbench.models import LockRow, Post


def _load(**options):
    call_command("load_db", workbench=True, **{"posts": 200, "seed": 1} | options)
    return list(Post.objects.values_list("id", "title", "content", "created_at"))


def _manage(*argv, **environ):
    return subprocess.run(
        [sys.executable, "manage.py", *argv],
        cwd=BASE_DIR,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.django_db(transaction=True)
def test_same_seed_creates_the_same_rows():
    first = _load()
    assert [row[0] for row in first] == list(range(1, 201))
    assert list(LockRow.objects.values_list("id", flat=True)) == list(range(1, LOCK_ROWS + 1))
    Post.objects.create(title="written since", content="")
    assert _load(reload=True) == first
    assert _load(reload=True, seed=2) != first


@pytest.mark.django_db(transaction=True)
def test_existing_posts_are_left_unchanged(capsys):
    first = _load()
    assert _load(if_empty=True, posts=300) == first
    with pytest.raises(CommandError, match=r"200 posts.*load_db --workbench --reload"):
        _load()


@pytest.mark.django_db(transaction=True)
def test_posts_written_later_get_the_next_id():
    _load()
    assert Post.objects.create(title="t", content="c").pk == 201


def test_invalid_number_of_posts_is_usage_error(stack):
    process = _manage("load_db", "--workbench", "--posts", "99", LAB_WORKBENCH="on")
    assert process.returncode == 2
    assert "a whole number from 100" in process.stderr


def test_load_without_the_setting_names_the_setting(stack):
    process = _manage("load_db", "--workbench")
    assert process.returncode == 2
    assert "lab set LAB_WORKBENCH=on" in process.stderr


def test_app_and_route_are_absent_without_the_setting(stack):
    script = (
        "import django; django.setup();"
        "from django.apps import apps; from django.test import Client;"
        "answer = Client(SERVER_NAME='localhost').get('/workbench/hello/');"
        "print(apps.is_installed('workbench'), apps.is_installed('live'), answer.status_code)"
    )
    process = _manage("shell", "--verbosity", "0", "--command", script)
    assert process.stdout.split() == ["False", "False", "404"]
