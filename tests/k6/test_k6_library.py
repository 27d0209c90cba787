"""The k6 scripts without the lab: their library's tests inside k6, and `k6 run main.js`."""

import os
import shutil
import subprocess

import pytest

from load_lab.load.summary import read_summary
from load_lab.paths import ROOT
from load_lab.stack.native.program_paths import require

K6 = ROOT / "k6"


def _k6(*argv, **environ):
    return subprocess.run(
        [str(require("k6")), "run", "--quiet", *argv],
        cwd=K6,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def test_library_tests_pass_inside_k6():
    process = _k6("tests/lib.test.js")
    assert process.returncode == 0, process.stdout + process.stderr


@pytest.mark.skipif(
    not shutil.which("npm"), reason="npm is not installed: types of k6/*.js are not checked"
)
def test_type_check_passes():
    process = subprocess.run(
        ["npm", "run", "--silent", "check"], cwd=K6, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stdout


def test_scripts_import_nothing_over_the_network():
    scripts = [file for file in K6.rglob("*.js") if "node_modules" not in file.parts]
    assert scripts
    imports = [line for f in scripts for line in f.read_text().splitlines() if " from '" in line]
    assert imports
    assert [line for line in imports if "http://" in line or "https://" in line] == []


def test_summary_of_a_stopped_setup_can_be_read(tmp_path):
    summary = tmp_path / "k6-summary.json"
    variables = {"PROFILE": "hold", "SCENARIO": "list", "BASE_URL": "http://127.0.0.1:1"}
    assert _k6("main.js", **variables, SUMMARY_PATH=str(summary)).returncode
    stopped = read_summary(summary)
    assert (stopped.started, stopped.seconds) == (None, 0)


def test_plain_run_with_push_env_is_the_smoke_test(stack):
    settings = stack.settings()
    process = subprocess.run(
        ["sh", "-c", '. ./push.env && exec "$0" run --quiet main.js', str(require("k6"))],
        cwd=K6,
        env={
            **{k: v for k, v in os.environ.items() if not k.startswith("K6_")},
            "BASE_URL": settings.target_url,
            "SCENARIO": "list",
            "DURATION": "2s",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert "smoke, list" in process.stdout


@pytest.mark.parametrize(
    ("variable", "value", "text"),
    [
        ("PROFILE", "stress", "breakpoint"),
        ("SCENARIO", "checkout", "journey"),
        ("RATE", "quick", "RATE"),
        ("K6_VUS", "5", "K6_VUS"),
    ],
)
def test_invalid_values_stop_the_run_with_a_message(variable, value, text):
    process = _k6("main.js", **{"PROFILE": "hold", variable: value})
    assert process.returncode not in (0, 99)
    assert text in process.stderr


def test_unexpected_settings_stop_the_run(stack):
    process = _k6(
        "main.js",
        BASE_URL=stack.settings().target_url,
        SETTINGS_URL=f"{stack.settings().backend_url}/lab/settings",
        LAB_TOKEN=stack.token(),
        EXPECT_SETTINGS="LAB_DETAIL=fast",
    )
    assert process.returncode != 0
    assert "LAB_DETAIL" in process.stderr
