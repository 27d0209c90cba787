"""`lab --help` and wrong input on the command line."""

import subprocess
import sys

import pytest
import typer

from load_lab.cli import app
from load_lab.load import ApiScenario, Profile, Scenario
from load_lab.paths import BIN, ROOT

# Modules that are slow to import, and modules that only a running stack needs.
HEAVY = (
    "altair",
    "redis",
    "psutil",
    "load_lab.stack.engine",
    "load_lab.settings",
    "load_lab.load.k6",
)


@pytest.mark.parametrize("argv", [["--help"], ["status", "--help"], ["k6", "--help"]])
def test_help_imports_no_engine_or_chart_library(argv):
    code = (
        "import sys; from load_lab.cli import main; sys.argv = ['lab', *sys.argv[1:]]\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    process = subprocess.run(
        [sys.executable, "-c", code, *argv], capture_output=True, text=True, check=True
    )
    assert process.stderr.strip() == "[]"
    assert "Usage: lab" in process.stdout


def test_every_option_has_help_text():
    commands = typer.main.get_command(app).commands
    without = [
        f"{name} {parameter.name}"
        for name, command in commands.items()
        for parameter in command.params
        if parameter.name not in ("help", "assignments") and not parameter.help
    ]
    assert without == []


@pytest.mark.parametrize(("variable", "names"), [("PROFILE", Profile), ("SCENARIO", Scenario)])
def test_profiles_and_scenarios_match_k6_script(variable, names):
    process = subprocess.run(
        [str(BIN / "k6"), "inspect", "--include-system-env-vars", "main.js"],
        cwd=ROOT / "k6",
        env={variable: "unknown"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode != 0
    assert f"Set it to one of: {', '.join(names)}." in process.stderr


def test_api_scenarios_are_scenarios():
    assert set(ApiScenario) <= set(Scenario)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("k6", "smoke", "--scenario", "checkout"), "'checkout' is not one of 'journey', 'list'"),
        (("k6", "breakpiont"), "'breakpiont' is not one of 'smoke', 'breakpoint'"),
        (("set", "--preset", "bst"), "'bst' is not one of 'article', 'best'"),
        (("show", "no-such-run"), "There is no run no-such-run"),
        (("report", "no-such-run"), "There is no run no-such-run"),
        (("show", "x", "--export", "xlsx", "x.xlsx"), "'xlsx' is not one of 'csv', 'md', 'json'"),
        (("list", "cells"), "'cells' is not one of 'profiles', 'scenarios'"),
        (("overload", "--duration", "5s"), "--duration 5s is out of range"),
        (("overload", "--duration", "20"), "--duration 20 is not a duration"),
        (("k6", "hold", "--duration", "soon"), "--duration soon is not a duration"),
        (("k6", "hold", "--p95", "300"), "--p95 300 is not a duration. Write it like 300ms"),
        (("k6", "hold", "--p95", "0ms"), "--p95 0ms is out of range: 1ms to 60m"),
        (("capacity", "--p95", "2h"), "--p95 2h is out of range: 1ms to 60m"),
        (("k6", "hold", "--errors", "0.01"), "--errors 0.01 is not a percentage"),
        (("k6", "smoke", "--", "--vus", "5"), "--vus can't be passed to k6"),
        (("k6", "smoke", "--", "-u5"), "-u5 can't be passed to k6"),
        (("k6", "smoke", "--", "--tag=testid=x"), "--tag can't be passed to k6"),
        (("k6", "smoke", "--", "--features=freeze-env"), "--features can't be passed to k6"),
        (("k6", "smoke", "--", "--summary-mode", "disabled"), "--summary-mode can't be passed"),
        (("k6", "smoke", "fast"), "'fast' is not an option of k6"),
    ],
)
def test_wrong_input_is_one_message_with_exit_code_2(lab, argv, message):
    result = lab(*argv)
    assert result.is_one_message(2), result.err
    assert message in result.err


def test_version_is_printed(lab):
    assert lab("--version").out.startswith("lab 0.")


def test_list_shows_profiles_scenarios_experiments_and_presets(lab):
    document = lab("list", "--json").json
    assert set(document) == {"profiles", "scenarios", "experiments", "presets", "targets"}
    assert {entry["name"] for entry in document["presets"]} == {"article", "best"}
    assert all(entry["about"] for entries in document.values() for entry in entries)
    assert "cache-ladder" in lab("list", "experiments").out


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_signal_while_the_error_is_printed_keeps_the_exit_code(number):
    code = (
        "import os, signal\n"
        "from load_lab import cli, console\n"
        "console.err.file = open(os.devnull, 'w')\n"
        f"console.err.file.flush = lambda: os.kill(os.getpid(), signal.{number})\n"
        "cli.main()"
    )
    argv = [sys.executable, "-c", code, "show", "no-such-run"]
    assert subprocess.run(argv, check=False).returncode == 2
