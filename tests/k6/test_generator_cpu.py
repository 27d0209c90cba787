"""Generator CPU on the "Break point" dashboard, tested by promtool with and without a load host."""

import json
import subprocess

import pytest

from grafana.src.queries.signals import cpu_busy
from load_lab.metrics.queries import one_run
from load_lab.stack.native.program_paths import require

RUNNING = {"series": 'test:running{testid="t"}', "values": "1x12"}
LOAD_SIDE = [
    {"series": 'side:cpu_cores:rate{side="load"}', "values": "0.5x12"},
    {"series": 'lab_cpus{side="load"}', "values": "2x12"},
]


def _host(service: str, idle: str) -> list[dict[str, str]]:
    """Return the series of a host with two CPUs, each idle for `idle` seconds in every 5 s."""
    name = f'node_cpu_seconds_total{{service="{service}",mode="idle",cpu="%d"}}'
    return [{"series": name % cpu, "values": f"0+{idle}x12"} for cpu in (0, 1)]


@pytest.mark.parametrize(
    ("series", "usage"),
    [
        pytest.param(LOAD_SIDE, 0.25, id="on the target's host"),
        pytest.param([*LOAD_SIDE, *_host("host", "1")], 0.25, id="ignores the target's host"),
        pytest.param(_host("load", "1"), 0.8, id="separate host"),
        pytest.param([*LOAD_SIDE, *_host("load", "1")], 0.8, id="higher of both"),
    ],
)
def test_generator_cpu_is_measured_where_k6_runs(tmp_path, series, usage):
    samples = [{"labels": "{}", "value": usage}]
    expectation = {
        "expr": cpu_busy("load", one_run("t")),
        "eval_time": "1m",
        "exp_samples": samples,
    }
    test = {"interval": "5s", "input_series": [RUNNING, *series], "promql_expr_test": [expectation]}
    file = tmp_path / "test.yml"
    # JSON is YAML.
    file.write_text(json.dumps({"rule_files": [], "tests": [test]}))
    argv = [str(require("promtool")), "test", "rules", str(file)]
    process = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
