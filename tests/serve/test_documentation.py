"""docs/metrics.md lists exactly the metrics that exist."""

import re
from pathlib import Path

from prometheus_client import Metric
from tests.podset.simulated_sets import podset_engine

from longshore.cluster import ClusterState
from longshore.engine import Engine
from longshore.kube.cluster import Mirror
from longshore.serve import Metrics, registry_of
from longshore.serve.extender import metrics as extender_metrics
from longshore.serve.planner import metrics as planner_metrics

TEXT = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
_ROW = re.compile(
    r"^\| `((?:scheduler|longshore|leader)_\w+)` \| (\w+) \| ([\w, ]*) ?\| (.+) \|$", re.MULTILINE
)


class _Process:
    lease_name = "longshore"
    leads = True
    writes_in_flight = 0
    events_waiting = 0
    mirrors = (Mirror("pods", is_synced=True, size=1, lists=1),)


def described(family: Metric) -> tuple[str, str, tuple[str, ...]]:
    name = f"{family.name}_total" if family.type == "counter" else family.name
    return name, family.type, tuple(getattr(family, "_labelnames", ()))


def test_the_tables_and_the_registries_agree() -> None:
    scheduler = registry_of(Metrics(podset_engine()), _Process())
    extender = extender_metrics.registry_of(extender_metrics.Traffic(), ClusterState())
    planner = planner_metrics.registry_of(planner_metrics.Requests(), lambda: _Process.mirrors)
    families = [*scheduler.collect(), *extender.collect(), *planner.collect()]
    there = {described(family) for family in families if not family.name.startswith("process_")}
    listed = [
        (name, kind, tuple(labels.replace(",", " ").split())) for name, kind, labels, _ in _ROW.findall(TEXT)
    ]
    assert len(listed) == len(set(listed))
    assert set(listed) == there


def test_metrics_listed_as_not_available_do_not_exist() -> None:
    registry = registry_of(Metrics(Engine()), _Process())
    there = {described(family)[0] for family in registry.collect()}
    [missing] = re.findall(r"^- \*\*Not available\*\*: (.*?)\n\n", TEXT, flags=re.MULTILINE | re.DOTALL)
    names = re.findall(r"`(scheduler_\w+)`", missing)
    assert names
    assert not there & set(names)
