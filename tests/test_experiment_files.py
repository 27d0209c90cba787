"""The project's own experiments, and the schema beside k6's own bounds."""

import re

import pytest

from lab.experiment import load
from lab.experiment.run import make_plan
from lab.experiment.schema import Workload
from lab.paths import EXPERIMENTS, ROOT
from lab.settings import load_settings

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


def test_the_schema_bounds_loads_as_k6_does():
    code = "".join(path.read_text() for path in (ROOT / "k6/lib").glob("*.js"))
    asked = re.findall(r"envInteger\(variables, '(\w+)', .+?, (\d+), (\d+)\)", code)
    of_k6 = {BOUNDS[n]: (int(low), int(high)) for n, low, high in asked if n in BOUNDS}
    said = Workload.model_json_schema()["properties"]
    for name in BOUNDS.values():
        (found,) = (each for each in said[name]["anyOf"] if each["type"] == "integer")
        assert (found["minimum"], found["maximum"]) == of_k6[name], name


@pytest.mark.parametrize("path", sorted(EXPERIMENTS.glob("*.toml")), ids=lambda path: path.stem)
def test_the_projects_own_experiments_are_right(path):
    experiment = load.parse(path.stem, path.read_text())
    cells = load.checked_cells(path.stem, experiment, load_settings({}))
    asked = {"only": [], "repeats": None}
    full, quick = (
        make_plan(path.stem, "", experiment, cells, **asked, quick=quick) for quick in (False, True)
    )
    assert len(full.todo) == len(cells)
    if experiment.quick:
        assert quick.seconds < 10 * 60
        assert {cell.name for cell, _ in quick.todo} == _asked_for(experiment)


def _asked_for(experiment):
    """The cells that some claim needs."""
    said = [text for claim in experiment.claims for text in claim.measures.values()]
    return {name for text in said for name in re.findall(r"'([^']+/[^']+)'", text)}
