"""Fields of Django REST framework, against a real API: what they accept, in whatever form it
answers with them.
"""

import subprocess
import sys

import pytest

from load_lab.paths import ROOT
from load_lab.stack.native.supervision import port_is_open, wait_for
from load_lab.targets.making import MixOptions, make_mix
from tests.support.ports import free_port


@pytest.fixture
def url():
    port = free_port()
    server = [sys.executable, "-m", "gunicorn", "--bind", f"127.0.0.1:{port}", "app:application"]
    process = subprocess.Popen(server, cwd=ROOT / "tests/support/drf_app")
    try:
        wait_for(lambda: port_is_open("127.0.0.1", port), seconds=60, what="gunicorn")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def test_dates_and_choices_are_written_in_a_form_that_is_accepted(url, tmp_path):
    path = tmp_path / "events.toml"
    path.write_text(f'url = "{url}"\nopenapi = "/schema/?format=json"\nwrites = true\n')
    mix = make_mix(str(path), MixOptions(), approve=print).mix
    assert [each for each in mix.left_out if each.name != "GET /schema/"] == []
    assert {each.method for each in mix.operations} == {"GET", "POST", "PUT", "DELETE"}
