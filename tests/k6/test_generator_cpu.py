"""Generator CPU on the "Break point" dashboard, tested by promtool with and without a load host."""

import json
import subprocess

import pytest

from grafana.src.queries.knee import generator_cpu
from lab.stack.native.programs import require

LOAD_SIDE = [
    {"series": 'side:cpu_cores:rate{side="load"}', "values": "0.5x12"},
    {"series": 'lab_cpus{side="load"}', "values": "2x12"},
]


def _host(service: str, idle: str) -> list[dict[str, str]]:
    """Return the series of a host with two CPUs, each idle for `idle` seconds in every 5 s."""
    name = f'node_cpu_seconds_total{{service="{service}",mode="idle",cpu="%d"}}'
    return [{"series": name % cpu, "values": f"0+{idle}x12"} for cpu in (0, 1)]


@pytest.mark.parametrize(
    ("series", "busy"),
    [
        pytest.param(LOAD_SIDE, 0.25, id="beside the target"),
        pytest.param([*LOAD_SIDE, *_host("host", "1")], 0.25, id="the target's host is not it"),
        pytest.param(_host("load", "1"), 0.8, id="a host of its own"),
        pytest.param([*LOAD_SIDE, *_host("load", "1")], 0.8, id="the busier of both"),
    ],
)
def test_generator_cpu_is_measured_where_k6_runs(tmp_path, series, busy):
    samples = [{"labels": "{}", "value": busy}]
    asked = {"expr": generator_cpu(), "eval_time": "1m", "exp_samples": samples}
    test = {"interval": "5s", "input_series": series, "promql_expr_test": [asked]}
    file = tmp_path / "test.yml"
    # JSON is YAML.
    file.write_text(json.dumps({"rule_files": [], "tests": [test]}))
    argv = [str(require("promtool")), "test", "rules", str(file)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
