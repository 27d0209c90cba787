"""Recording and alerting rules pass promtool's tests, and those tests detect broken rules."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from grafana.src.queries.runs import layer_switches
from load_lab.paths import ROOT
from load_lab.stack.native.program_paths import require

PROMETHEUS = ROOT / "prometheus"
RULES = sorted((PROMETHEUS / "rules").glob("*.yml"))
TESTS = sorted((PROMETHEUS / "tests").glob("*.yml"))


def _promtool(*argv: str, cwd: Path = PROMETHEUS) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(require("promtool")), *argv], cwd=cwd, capture_output=True, text=True, check=False
    )


def _rules(path: Path) -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]]


ALERTS = [rule for path in RULES for rule in _rules(path) if "alert" in rule]


def test_prometheus_accepts_its_configuration_and_rules():
    result = _promtool("check", "config", "prometheus.yml")
    assert result.returncode == 0, result.stderr
    assert f"{len(RULES)} rule files found" in result.stdout


def test_rules_pass_their_promtool_tests():
    result = _promtool("test", "rules", *(path.name for path in TESTS), cwd=PROMETHEUS / "tests")
    assert result.returncode == 0, result.stdout + result.stderr


@dataclass(frozen=True)
class Mutation:
    """A changed rule, and the text of its file with the change."""

    rule: str
    change: str
    file: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}{self.change}"


@pytest.mark.full
def test_promtool_tests_detect_broken_rules(tmp_path):
    """Remove each rule, and each operand of an `or`, once; a test that names it must fail."""
    mutations = [mutation for path in RULES for mutation in _mutations(path)]
    assert len(mutations) > 30
    _check_mutations(tmp_path, mutations)
    assert [str(one) for one in _passing(tmp_path, mutations)] == []


@pytest.mark.full
def test_tests_that_name_a_rule_pass_while_it_is_unchanged(tmp_path):
    """Otherwise each of its mutations would look detected."""
    texts = {path.name: path.read_text() for path in RULES}
    rules = {rule.rule: rule for path in RULES for rule in _mutations(path)}
    unchanged = [replace(rule, text=texts[rule.file]) for rule in rules.values()]
    passing = _passing(tmp_path, unchanged)
    assert [rule.rule for rule in unchanged if rule not in passing] == []


def _passing(folder: Path, mutations: list[Mutation]) -> list[Mutation]:
    folders = [folder / str(number) for number in range(len(mutations))]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(_passes, folders, mutations))
    return [one for one, passes in zip(mutations, results, strict=True) if passes]


def _mutations(path: Path) -> Iterator[Mutation]:
    document = yaml.safe_load(path.read_text())
    for group in document["groups"]:
        for rule in group["rules"]:
            original = rule["expr"]
            for part in _alternatives(original):
                rule["expr"] = part
                name, change = rule.get("record", rule.get("alert")), f"{rule.get('labels', '')}"
                text = yaml.safe_dump(document)
                yield Mutation(name, f"{change} as {part!r}", path.name, text)
            rule["expr"] = original


def _alternatives(expr: str) -> list[str]:
    """Return the expression without each operand of `or`; with one operand, an empty result."""
    sides = re.split(r"^or\s", expr, flags=re.MULTILINE)
    if len(sides) == 1:
        return ["vector(1) > 2"]
    return ["or ".join(sides[:n] + sides[n + 1 :]) for n in range(len(sides))]


def _check_mutations(folder: Path, mutations: list[Mutation]) -> None:
    """Check that every mutation is still a rule: promtool's tests also fail for one that is not."""
    names = [f"{number}.yml" for number in range(len(mutations))]
    for name, mutation in zip(names, mutations, strict=True):
        (folder / name).write_text(mutation.text)
    result = _promtool("check", "rules", *names, cwd=folder)
    assert result.returncode == 0, result.stderr


def _passes(folder: Path, mutation: Mutation) -> bool:
    shutil.copytree(PROMETHEUS / "rules", folder / "rules")
    (folder / "rules" / mutation.file).write_text(mutation.text)
    (folder / "tests").mkdir()
    names = [path.name for path in TESTS if _copy_tests_of(mutation, path, folder / "tests")]
    assert names, f"No test names the rule {mutation.rule}."
    return _promtool("test", "rules", *names, cwd=folder / "tests").returncode == 0


def _copy_tests_of(mutation: Mutation, path: Path, folder: Path) -> bool:
    """Copy a file's tests that name the rule, since all of them take a second; return whether there
    are any.
    """
    # Test files are named after their rule file.
    if not path.stem.startswith(Path(mutation.file).stem):
        return False
    # Scalars stay text: for YAML 1.1, the values `0x12` of a series would be a hexadecimal number.
    document = yaml.load(path.read_text(), Loader=yaml.BaseLoader)
    document["tests"] = [one for one in document["tests"] if mutation.rule in yaml.safe_dump(one)]
    (folder / path.name).write_text(yaml.dump(document, Dumper=_TextDumper))
    return bool(document["tests"])


class _TextDumper(yaml.SafeDumper):
    """Writes each text without quotes where it can, although it looks like a number."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_alerts_have_a_description_and_valid_runbook_link(alert):
    assert set(alert["annotations"]) == {"summary", "description", "runbook_url"}
    page, _, anchor = alert["annotations"]["runbook_url"].partition("#")
    headings = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(), re.MULTILINE)
    assert anchor in [heading.lower() for heading in headings]


def test_rule_evaluation_interval_matches_scrape_interval():
    config = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())["global"]
    intervals = {
        group["interval"] for path in RULES for group in yaml.safe_load(path.read_text())["groups"]
    }
    assert intervals == {config["scrape_interval"]} == {config["evaluation_interval"]}


def _settings_series(detail: str, values: str) -> dict[str, str]:
    return {"series": f'lab_settings_info{{lab_detail="{detail}"}}', "values": values}


def test_layer_switch_is_annotated_across_the_gap_of_a_recreated_backend(tmp_path):
    """From naive to fast with a gap of 45 s, and back without one."""
    switches = {"fast": 70, "naive": 115}
    series = [
        _settings_series("naive", "1x5 stale _x16 1x12"),
        _settings_series("fast", "_x14 1x8 stale _x12"),
    ]
    samples = {
        at: [{"labels": f'lab_settings_info{{lab_detail="{detail}"}}', "value": 1}]
        for detail, at in switches.items()
    }
    switches_now = layer_switches().replace("$__interval", "5s")
    # Before the first scrape there is nothing to compare with.
    tests = [
        {"expr": switches_now, "eval_time": f"{at}s", "exp_samples": samples.get(at, [])}
        for at in range(0, 180, 5)
    ]
    document = {"interval": "5s", "input_series": series, "promql_expr_test": tests}
    (tmp_path / "switches.yml").write_text(yaml.safe_dump({"rule_files": [], "tests": [document]}))
    result = _promtool("test", "rules", "switches.yml", cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
