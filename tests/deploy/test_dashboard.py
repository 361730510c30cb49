"""deploy/grafana-dashboard.json queries only metrics that exist, and describes its panels."""

import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import Metric
from tests.podset.simulated_sets import podset_engine

from longshore.cluster import ClusterState
from longshore.dev.prometheus import MonitoredNodes
from longshore.kube.cluster import Mirror
from longshore.serve import Metrics, registry_of
from longshore.serve.extender import metrics
from longshore.serve.extender.metrics import Traffic

FILE = Path(__file__).parents[2] / "deploy" / "grafana-dashboard.json"
DASHBOARD = json.loads(FILE.read_text())
# Labels that Prometheus adds to everything that it scrapes.
SCRAPED = {"job", "instance"}
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}


class Process:
    lease_name = "longshore"
    leads = True
    writes_in_flight = 0
    events_waiting = 0
    mirrors = (Mirror("pods", is_synced=True, size=1, lists=1),)


def panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def queries() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel["targets"]]


def families() -> Iterator[Metric]:
    """Return all metrics of `longshore run` and `longshore extender`."""
    yield from registry_of(Metrics(podset_engine()), Process()).collect()
    yield from metrics.registry_of(Traffic(), ClusterState()).collect()


@cache
def served() -> dict[str, set[str]]:
    """Return the names of the series with their labels."""
    return {
        family.name + suffix: set(getattr(family, "_labelnames", ())) | {"le"}
        for family in families()
        for suffix in SUFFIXES.get(family.type, ("",))
    }


def metrics_in(query: str) -> set[str]:
    """Return the names that are followed by a selector. All of ours have one, for the job."""
    return set(re.findall(r"([a-z_]+)\{", query))


@pytest.mark.parametrize("query", queries())
def test_a_query_uses_only_existing_metrics_and_labels(query: str) -> None:
    names, known = metrics_in(query), served()
    assert names
    assert names <= set(known)
    selected = re.findall(r"([a-z_]+)(?:=~|!=|=)\"", query)
    grouped = [label for labels in re.findall(r"by \(([^)]*)\)", query) for label in labels.split(", ")]
    for name in names:
        assert {*selected, *grouped} <= known[name] | SCRAPED


@pytest.mark.parametrize("query", queries())
def test_a_real_prometheus_accepts_a_query(prometheus: MonitoredNodes, query: str) -> None:
    """The query has values for its variables, as when Grafana sends it."""
    asked = query.replace("$__rate_interval", "1m").replace("$job", "longshore|extender")
    assert "$" not in asked
    body = urllib.parse.urlencode({"query": asked}).encode()
    url = f"{prometheus.url}/api/v1/query"
    try:
        with urllib.request.urlopen(url, body, timeout=10) as response:  # noqa: S310 - on this machine
            answer = json.load(response)
    except urllib.error.HTTPError as refusal:
        answer = json.load(refusal)
    assert (answer["status"], answer.get("error")) == ("success", None)
    assert "warnings" not in answer


@pytest.mark.parametrize("query", queries())
def test_a_query_selects_the_chosen_jobs(query: str) -> None:
    assert query.count("{") == query.count('{job=~"$job"')


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: str(panel["title"]))
def test_a_panel_has_a_description_and_a_unit(panel: dict[str, Any]) -> None:
    assert panel["title"]
    assert panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"]
    sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
    assert {source["uid"] for source in sources} == {"${datasource}"}


def test_a_legend_uses_only_labels_of_the_result_of_its_query() -> None:
    for panel in panels():
        for target in panel["targets"]:
            left = re.findall(r"by \(([^)]*)\)", target["expr"])
            named = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            labels = set(left[0].split(", ")) if left else set().union(*served().values()) | SCRAPED
            assert named <= labels, target["legendFormat"]


def test_data_source_and_jobs_can_be_chosen() -> None:
    variables = {each["name"]: each for each in DASHBOARD["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    assert variables["job"]["definition"] == "label_values(longshore_build_info, job)"
    assert "longshore_build_info" in served()


def test_panels_do_not_overlap() -> None:
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    places = sorted((p["gridPos"]["y"], p["gridPos"]["x"], p["gridPos"]) for p in DASHBOARD["panels"])
    for (y, _, one), (next_y, next_x, _) in pairwise(places):
        assert next_x >= one["x"] + one["w"] if next_y == y else next_y >= y + one["h"]
