"""The project's experiments, and the schema compared with k6's limits."""

import re

import pytest

from load_lab.errors import UsageError
from load_lab.experiments import files
from load_lab.experiments.plan import make_plan
from load_lab.experiments.schema import Workload
from load_lab.paths import EXPERIMENTS, ROOT
from load_lab.settings import load_settings

BOUNDS = {
    **{
        "RATE": "rate",
        "VUS": "vus",
        "MAX_VUS": "max_vus",
        "CONNECTIONS": "connections",
        "RETRIES": "retries",
    },
    "RESPONSE_TIME_BOUND": "bound_ms",
}


def test_schema_limits_match_k6():
    scripts = [path for path in (ROOT / "k6").rglob("*.js") if "node_modules" not in path.parts]
    code = "".join(path.read_text() for path in scripts)
    limits = re.findall(r"readInteger\(\w+, '(\w+)', .+?, (\d+), (\d+)\)", code)
    k6_limits = {BOUNDS[n]: (int(low), int(high)) for n, low, high in limits if n in BOUNDS}
    schema = Workload.model_json_schema()["properties"]
    for name in BOUNDS.values():
        (field,) = (option for option in schema[name]["anyOf"] if option["type"] == "integer")
        assert (field["minimum"], field["maximum"]) == k6_limits[name], name


@pytest.mark.parametrize("path", sorted(EXPERIMENTS.glob("*.toml")), ids=lambda path: path.stem)
def test_project_experiments_are_valid(path):
    experiment = files.parse(path.stem, path.read_text())
    cells = files.checked_cells(path.stem, experiment, load_settings({}))
    options = {"only": [], "repeats": None}
    full, quick = (
        make_plan(path.stem, "", experiment, cells, **options, quick=quick)
        for quick in (False, True)
    )
    assert len(full.todo) == len(cells)
    if experiment.quick:
        assert quick.seconds(slowness=1) < 10 * 60
        assert {cell.name for cell, _ in quick.todo} == _claimed_cells(experiment)


def _claimed_cells(experiment):
    """Return the names of the cells that the claims use."""
    expressions = [text for claim in experiment.claims for text in claim.measures.values()]
    return {name for text in expressions for name in re.findall(r"'([^']+/[^']+)'", text)}


def test_custom_experiment_is_named_by_its_path(tmp_path, monkeypatch):
    path = tmp_path / "mine.toml"
    path.write_text((EXPERIMENTS / "cache-ladder.toml").read_text())
    assert files.definition(str(path)) == ("mine", path.read_text())
    monkeypatch.chdir(tmp_path)
    assert files.definition("mine.toml")[0] == "mine"
    for unknown in ("mine", str(tmp_path)):
        with pytest.raises(UsageError, match=r"no experiment .* ends in \.toml"):
            files.definition(unknown)
    with pytest.raises(UsageError, match=r"no file .*other\.toml\. Known experiments: "):
        files.definition(str(tmp_path / "other.toml"))
