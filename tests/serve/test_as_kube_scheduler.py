"""Metrics with kube-scheduler's names have the same types, labels and buckets as kube-scheduler's.

A real kube-scheduler schedules the same kinds of pods, so that all of its metrics can be compared.
"""

import ssl
import subprocess
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from tests.live.pods import create, manifest, placed, wait_until_running
from tests.serve.engines import Observed
from tests.waiting import eventually

from longshore.dev import ControlPlane
from longshore.dev.build import build
from longshore.dev.ports import Port
from longshore.engine import Engine
from longshore.testing import node, pod

pytestmark = pytest.mark.control_plane
# Metrics that appear only when a pod waits on a Permit plugin. No default plugin makes pods wait.
_PLUGIN_DURATIONS = "scheduler_plugin_execution_duration_seconds"
_NOT_SHOWN = {"scheduler_permit_wait_duration_seconds"}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Metric]]:
    with ControlPlane.start(nodes=2) as plane:  # 8 cores each
        yield _measured(plane, tmp_path_factory.mktemp("kube-scheduler"))


def _measured(plane: ControlPlane, folder: Path) -> Mapping[str, Metric]:
    port = Port()
    process = subprocess.Popen(
        [
            str(build() / "kube-scheduler"),
            f"--kubeconfig={plane.kubeconfig}",
            f"--secure-port={port.number}",
            "--bind-address=127.0.0.1",
            "--permit-port-sharing",
            "--leader-elect=false",
            f"--cert-dir={folder}",
            "--authorization-always-allow-paths=/metrics",
        ],
        stderr=subprocess.DEVNULL,
    )
    try:
        _busy(plane)
        _try_until_plugins_are_timed(plane, port.number)
        # kube-scheduler adds durations to its metrics in order, but only once a second.
        return eventually(lambda: _scraped(port.number), lambda found: _binds(found) == 11)
    finally:
        process.kill()
        process.wait()
        port.release()


def _busy(plane: ControlPlane) -> None:
    """Pods that fit, one that does not fit, one that is gated, and one that preempts others."""
    plane.apply("""
      {apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}
    """)
    low = [manifest(f"low-{number}", cpu="1500m", scheduler="default-scheduler") for number in range(10)]
    create(plane, "default", *low)
    wait_until_running(plane, "default", 10)
    huge = manifest("huge", cpu="100", scheduler="default-scheduler")
    gated = manifest("gated", scheduler="default-scheduler")
    gated["spec"]["schedulingGates"] = [{"name": "example.org/later"}]
    high = manifest("high", cpu="5", scheduler="default-scheduler")
    high["spec"]["priorityClassName"] = "high"
    create(plane, "default", huge, gated, high)
    eventually(lambda: placed(plane, "default"), lambda found: "default/high" in found, within=60)


def _try_until_plugins_are_timed(plane: ControlPlane, port: int) -> None:
    """Have pods tried that do not fit: kube-scheduler times plugins in one of ten attempts."""
    for number in range(200):
        if _PLUGIN_DURATIONS in _scraped(port):
            return
        create(plane, "default", manifest(f"huge-{number}", cpu="100", scheduler="default-scheduler"))


def _binds(families: Mapping[str, Metric]) -> float:
    """Return the number of binds in the durations of extension points."""
    family = families.get("scheduler_framework_extension_point_duration_seconds")
    return sum(
        sample.value
        for sample in (family.samples if family is not None else ())
        if sample.name.endswith("_count") and sample.labels["extension_point"] == "Bind"
    )


def _scraped(port: int) -> Mapping[str, Metric]:
    anyone = ssl.create_default_context()
    anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE
    address = f"https://127.0.0.1:{port}/metrics"
    with urllib.request.urlopen(address, context=anyone, timeout=10) as answer:
        return {family.name: family for family in text_string_to_metric_families(answer.read().decode())}


@pytest.fixture
def ours() -> Mapping[str, Metric]:
    observed = Observed(Engine(scheduler_name="default-scheduler"), tick=0.0001)
    mine = [pod(f"low-{number}").requests(cpu="1500m").scheduler("default-scheduler") for number in range(10)]
    observed.add(
        *(node(f"node-{n}").allocatable(cpu="8", memory="32Gi", pods="110") for n in range(2)), *mine
    )
    observed.bind_all()
    observed.add(pod("huge").requests(cpu="100").scheduler("default-scheduler"))
    observed.add(pod("gated").gates("later").scheduler("default-scheduler"))
    observed.add(pod("high").requests(cpu="5").priority(1000).scheduler("default-scheduler"))
    observed.advance()
    return {
        name: family
        for name, family in observed.families().items()
        if name.startswith("scheduler_") and name not in _NOT_SHOWN
    }


def _labels(family: Metric) -> set[frozenset[str]]:
    return {frozenset(sample.labels) for sample in family.samples if not sample.name.endswith("_created")}


def _values(family: Metric, *labels: str) -> set[tuple[str, ...]]:
    return {tuple(sample.labels[label] for label in labels) for sample in family.samples}


def _bounds(family: Metric) -> Iterable[float]:
    return sorted({float(sample.labels["le"]) for sample in family.samples if "le" in sample.labels})


def test_names_types_labels_and_buckets_are_kube_schedulers(
    ours: Mapping[str, Metric], theirs: Mapping[str, Metric]
) -> None:
    assert ours.keys() <= theirs.keys()
    for name, family in ours.items():
        other = theirs[name]
        assert family.samples, name
        assert family.type == other.type, name
        assert _labels(family) == _labels(other), name
        assert list(_bounds(family)) == pytest.approx(list(_bounds(other))), name


def test_values_of_labels_are_among_kube_schedulers(
    ours: Mapping[str, Metric], theirs: Mapping[str, Metric]
) -> None:
    """Longshore has fewer counts where it does not call a plugin that is irrelevant to the pod."""
    for name, labels in {
        "scheduler_schedule_attempts": ("profile",),
        "scheduler_pending_pods": ("queue",),
        "scheduler_cache_size": ("type",),
        "scheduler_unschedulable_pods": ("plugin", "profile"),
        "scheduler_queue_incoming_pods": ("queue", "event"),
        "scheduler_framework_extension_point_duration_seconds": ("extension_point", "status"),
        "scheduler_plugin_evaluation": ("plugin", "extension_point"),
    }.items():
        found, wanted = _values(ours[name], *labels), _values(theirs[name], *labels)
        assert found, name
        assert found <= wanted, name
