"""`longshore run` with an agent as a plugin, on the real cluster, with a real Prometheus."""

import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.live.conftest import StartScheduler
from tests.live.pods import condition, create, manifest, placed, pods
from tests.measure.nodeload import GIB, history, steady
from tests.waiting import eventually

from longshore.agents.safe import REASON_RISK
from longshore.dev import ControlPlane
from longshore.dev.prometheus import MonitoredNodes

SCHEDULER = "by-load"
USED = "node_memory_MemTotal_bytes - node_memory_MemAvailable_bytes"


def _configuration(prometheus: MonitoredNodes) -> str:
    """Only the agent scores, by the present memory, so that no test waits for a mean."""
    return yaml.safe_dump(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "profiles": [
                {
                    "schedulerName": SCHEDULER,
                    "plugins": {
                        "filter": {"enabled": [{"name": "SafeOverload"}]},
                        "score": {"disabled": [{"name": "*"}], "enabled": [{"name": "SafeOverload"}]},
                    },
                }
            ],
            "longshore": {
                "measurements": {
                    "provider": "prometheus",
                    "address": prometheus.url,
                    "interval": "500ms",
                    "queries": {"memory/mean": USED, "memory/std": ""},
                }
            },
        }
    )


@pytest.fixture
def nodes(control_plane: ControlPlane) -> Iterator[list[str]]:
    """Two nodes of 8 cores and 16 GiB with a label that no other node has."""
    prefix = f"load-{secrets.token_hex(3)}-"
    made = control_plane.add_nodes(2, prefix=prefix, memory="16Gi", labels={"load": prefix.strip("-")})
    yield made
    control_plane.kubectl("delete", "node", *made)


def _pod(name: str, node: str, *, only: bool = False) -> dict[str, Any]:
    made = manifest(name, scheduler=SCHEDULER)
    chosen = {"kubernetes.io/hostname": node} if only else {"load": node.rpartition("-")[0]}
    made["spec"]["nodeSelector"] = chosen
    made["spec"]["containers"][0]["resources"]["requests"]["memory"] = "1Gi"
    return made


def test_pods_avoid_a_loaded_node_until_it_is_loaded_no_more(
    control_plane: ControlPlane,
    namespace: str,
    prometheus: MonitoredNodes,
    nodes: list[str],
    start_scheduler: StartScheduler,
    tmp_path: Path,
) -> None:
    busy, calm = nodes
    now = time.time()
    prometheus.put(history(f"{busy}:9100", until=now, cores=steady(0.5), memory=steady(15.5 * GIB)))
    prometheus.put(history(f"{calm}:9100", until=now, cores=steady(0.5), memory=steady(GIB)))
    file = tmp_path / "scheduler.yaml"
    file.write_text(_configuration(prometheus))

    # They wait already when it starts: nothing is decided before the first measurements.
    create(
        control_plane, namespace, *(_pod(f"any-{n}", busy) for n in range(3)), _pod("stuck", busy, only=True)
    )
    scheduler = start_scheduler(control_plane, "--config", str(file))
    eventually(lambda: placed(control_plane, namespace), lambda found: len(found) == 3)
    assert set(placed(control_plane, namespace).values()) == {calm}
    eventually(lambda: pods(control_plane, namespace)["stuck"], condition)
    why = condition(pods(control_plane, namespace)["stuck"])["message"]
    assert REASON_RISK.format(utilization=90, resource="memory", percentile=30) in why

    available = f'node_memory_MemAvailable_bytes{{instance="{busy}:9100"}}'
    prometheus.put(f"{available} {12 * GIB} {round(time.time() * 1000)}\n")
    eventually(
        lambda: placed(control_plane, namespace), lambda found: found.get(f"{namespace}/stuck") == busy
    )
    assert scheduler.stop() == 0
    assert "query failed" not in scheduler.log.read_text()
