"""The running stack, as `lab up` and `lab status` print it."""

import io

import pytest
from rich.console import Console

from load_lab.cli.stack_wording import status
from load_lab.settings import Settings


def shown(settings):
    document = {"engine": "native", "services": [], "latency": None}
    console = Console(width=120, file=io.StringIO())
    console.print(status(document | {"settings": settings.model_dump()}))
    return console.file.getvalue()


@pytest.mark.parametrize(("app", "is_shown"), [("on", True), ("off", False)])
def test_settings_that_nothing_reads_are_not_listed(app, is_shown):
    text = shown(Settings(LAB_REFERENCE_APP=app))
    for name in ("LAB_DETAIL", "LAB_REDIS_CACHE", "LAB_NGINX_CACHE", "LAB_DATA_SEED"):
        assert (name in text) is is_shown, name
    for name in ("LAB_REFERENCE_APP", "LAB_TARGET_CPUS", "LAB_CLIENT_TIMEOUT"):
        assert name in text
    assert ("of the reference app" in text) is not is_shown
