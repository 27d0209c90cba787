"""Every combination of Nginx' switches."""

import subprocess
from itertools import product

import pytest

from lab.engine.native.programs import library_env
from tests.nginx_front import nginx, render_front


@pytest.mark.parametrize(
    ("cache", "shed"), list(product(("off", "basic", "protected"), ("off", "on")))
)
def test_every_combination_is_valid(tmp_path, cache, shed):
    render_front(tmp_path, 1, LAB_NGINX_CACHE=cache, LAB_SHED=shed)
    done = subprocess.run(
        nginx(tmp_path, "-t"), env=library_env(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "warn" not in done.stderr
