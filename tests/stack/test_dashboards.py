"""The dashboard files are up to date, explained and consistent with the scrape configuration."""

import re
from itertools import pairwise

import pytest
import yaml

from grafana.src import guide
from grafana.src.__main__ import FOLDER, write
from grafana.src.page import REFRESH
from load_lab.paths import ROOT
from tests.support.dashboards import (
    annotation_expressions,
    dashboards,
    metric_dashboards,
    panel_expressions,
)

PANELS = [
    pytest.param(dashboard, panel, id=f"{dashboard['title']}: {panel['title']}")
    for dashboard in metric_dashboards()
    for panel in dashboard["panels"]
]
# The last schema version; Grafana converts older ones when it loads them.
LAST_SCHEMA = 42
# Panels that Grafana 13 has, without those that it converts to others.
PANEL_TYPES = {"timeseries", "stat", "table", "heatmap", "xychart", "text"}
UIDS = {
    *("lab-load-test", "lab-break-point", "lab-bottleneck", "lab-cache-layers", "lab-resources"),
    *("lab-backend-database", "lab-compare"),
}


def test_committed_dashboards_match_their_sources(tmp_path):
    write(tmp_path)
    output = {file.name: file.read_text() for file in tmp_path.glob("*.json")}
    files = {file.name: file.read_text() for file in FOLDER.glob("*.json")}
    stale = [name for name in output | files if output.get(name) != files.get(name)]
    assert not stale, f"Run `make dashboards` and commit: {', '.join(stale)}"


def test_dashboards_are_complete_and_each_states_its_question():
    assert {dashboard["uid"] for dashboard in metric_dashboards()} == UIDS
    assert {dashboard["uid"] for dashboard in dashboards()} - UIDS == {guide.UID}
    for dashboard in metric_dashboards():
        assert dashboard["description"].endswith("?")


def test_dashboards_need_no_migration_and_are_not_editable():
    for dashboard in dashboards():
        assert dashboard["schemaVersion"] == LAST_SCHEMA
        assert {panel["type"] for panel in dashboard["panels"]} <= PANEL_TYPES
        for panel in dashboard["panels"]:
            if panel["type"] == "xychart":
                # Without them, Grafana takes the panel for one of version 9.
                assert panel["pluginVersion"]
                assert panel["options"]["mapping"] == "manual"
        assert dashboard["editable"] is False
        # Grafana 9.4 treated variables with the same id as one variable.
        ids = [variable["id"] for variable in dashboard.get("templating", {}).get("list", [])]
        assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(("dashboard", "panel"), PANELS)
def test_panel_has_unit_description_and_link_to_guide(dashboard, panel):
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert panel["description"].endswith(".")
    (link,) = panel["links"]
    number = int(re.fullmatch(rf"/d/{guide.UID}\?viewPanel=(\d+)", link["url"])[1])
    section, text = list(guide.sections().items())[number - 1]
    assert section == dashboard["title"]
    assert f"**{panel['title']}**" in text


@pytest.mark.parametrize(("dashboard", "panel"), PANELS)
def test_axis_of_a_plain_number_has_a_label(dashboard, panel):
    defaults = panel["fieldConfig"]["defaults"]
    if panel["type"] in ("timeseries", "xychart"):
        assert defaults["unit"] != "short" or defaults["custom"].get("axisLabel")


def test_response_times_are_on_logarithmic_axes():
    for dashboard in metric_dashboards():
        for panel in dashboard["panels"]:
            queries = " ".join(target["expr"] for target in panel["targets"])
            defaults = panel["fieldConfig"]["defaults"]
            is_chart = panel["type"] in ("timeseries", "xychart")
            if is_chart and defaults["unit"] == "s" and "duration" in queries:
                assert defaults["custom"]["scaleDistribution"]["type"] == "log", panel["title"]
                assert defaults["min"] > 0


def test_marks_of_a_kind_have_one_colour_on_every_dashboard():
    colours: dict[str, set[str]] = {}
    for dashboard in metric_dashboards():
        for mark in dashboard["annotations"]["list"]:
            colours.setdefault(mark["name"].rpartition(": ")[2], set()).add(mark["iconColor"])
    assert colours == {
        "test start": {"green"},
        "test end": {"blue"},
        "broke": {"red"},
        "layer switch": {"purple"},
    }


def test_links_keep_range_and_test():
    for dashboard in metric_dashboards():
        links = {link["title"]: link for link in dashboard["links"]}
        if dashboard["uid"] == "lab-compare":
            # Its range is that of neither test.
            assert all("from=${from_" in links[f"Load test of {side}"]["url"] for side in "AB")
        else:
            others = links["Dashboards"]
            assert others["keepTime"]
            assert others["includeVars"]
            assert others["tags"] == dashboard["tags"]
            assert links["Compare"]["url"].endswith("?var-testid_a=${last}")


def test_limit_is_drawn_on_the_axis_of_its_series_only():
    """A threshold of the whole panel is drawn on both axes: 1 s was also 1 request/s."""
    for dashboard in metric_dashboards():
        for panel in dashboard["panels"]:
            if panel["type"] == "timeseries":
                assert "thresholds" not in panel["fieldConfig"]["defaults"], panel["title"]


def test_points_have_colours_that_need_no_column():
    """A column can be value and colour at once only from Grafana 12.1 on."""
    charts = [
        panel
        for dashboard in metric_dashboards()
        for panel in dashboard["panels"]
        if panel["type"] == "xychart"
    ]
    assert charts
    assert all("color" not in one for panel in charts for one in panel["options"]["series"])


@pytest.mark.parametrize("dashboard", dashboards(), ids=lambda one: one["title"])
def test_rows_fill_the_width_with_panels_of_equal_height(dashboard):
    places = [panel["gridPos"] for panel in dashboard["panels"]]
    rows = {place.get("y", 0) for place in places}
    for row in rows:
        spans = sorted((p.get("x", 0), p["w"], p["h"]) for p in places if p.get("y", 0) == row)
        assert spans[0][0] == 0
        assert all(x + width == later[0] for (x, width, _), later in pairwise(spans))
        assert sum(spans[-1][:2]) == 24
        assert len({height for _, _, height in spans}) == 1


def test_dashboards_annotate_starts_ends_breaks_and_layer_switches():
    for dashboard in metric_dashboards():
        marks = " ".join(query.place for query in annotation_expressions(dashboard))
        kinds = ("test start", "test end", "broke", "layer switch")
        assert all(name in marks for name in kinds)


def test_k6_expressions_filter_by_the_selected_test():
    """Otherwise k6's series of different runs would be added up unnoticed."""
    for dashboard in metric_dashboards():
        for query in panel_expressions(dashboard):
            for matchers in re.findall(r"k6_\w+(\{[^}]*\})?", query.expr):
                assert "$tests" in matchers or "$testid_" in matchers, str(query)


def test_grafana_interval_matches_scrape_interval():
    settings = yaml.safe_load((ROOT / "prometheus/prometheus.yml").read_text())["global"]
    sources = yaml.safe_load((ROOT / "grafana/provisioning/datasources/prometheus.yml").read_text())
    (source,) = sources["datasources"]
    assert source["jsonData"]["timeInterval"] == settings["scrape_interval"] == REFRESH
    alloy = (ROOT / "alloy/config.alloy").read_text()
    assert set(re.findall(r'scrape_interval\s*=\s*"(\w+)"', alloy)) == {REFRESH}


def test_panels_query_the_provisioned_data_source():
    sources = yaml.safe_load((ROOT / "grafana/provisioning/datasources/prometheus.yml").read_text())
    uid = sources["datasources"][0]["uid"]
    for dashboard in metric_dashboards():
        items = [*dashboard["panels"], *dashboard["templating"]["list"]]
        assert {one["datasource"]["uid"] for one in items} == {uid}
