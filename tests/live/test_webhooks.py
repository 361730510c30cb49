"""Both schedulers on one cluster call the same extender in the same way."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.live.conftest import StartScheduler
from tests.live.pods import bind, condition, create, manifest, placed, pods
from tests.live.webhook import Said, Webhook
from tests.waiting import eventually

from longshore.dev import ControlPlane
from longshore.dev.build import build
from longshore.dev.fixtures import OwnCluster
from longshore.kube.writer import contains

STOCK, OURS = "default-scheduler", "longshore"
# Fields that differ between pods, or with the time of reading.
_PASSING = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")


def configuration(name: str, extenders: list[dict[str, Any]], kubeconfig: str = "") -> str:
    content = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": kubeconfig},
        "profiles": [{"schedulerName": name}],
        "extenders": extenders,
    }
    return json.dumps(content)


class Both:
    """Gives the same pod to one scheduler and then to the other, in the same situation."""

    def __init__(self, plane: ControlPlane, webhook: Webhook) -> None:
        self._plane = plane
        self._webhook = webhook

    def __call__(
        self, *, labels: dict[str, str], cpu: str = "100m", priority: str = "", low: int = 0
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the result and the requests to the extender, for kube-scheduler and for Longshore."""
        first, second = (self._try(name, labels, cpu, priority, low) for name in (STOCK, OURS))
        return first, second

    def _try(self, name: str, labels: dict[str, str], cpu: str, priority: str, low: int) -> dict[str, Any]:
        plane = self._plane
        for number in range(low):
            pod = manifest(f"low-{number}", cpu="8")
            pod["spec"]["nodeName"] = f"node-{number}"
            create(plane, "default", pod)
        # The scheduler knows all pods above when it binds this one: its watch reports changes in order.
        create(plane, "default", manifest("marker", cpu="0", scheduler=name))
        eventually(lambda: placed(plane, "default"), lambda found: "default/marker" in found)
        end(plane, "marker")
        eventually(lambda: pods(plane, "default"), lambda found: len(found) == low)
        self._webhook.heard.clear()
        annotations = {"example.com/note": "for the extender"}
        pod = manifest("web", cpu=cpu, scheduler=name, labels=labels, annotations=annotations)
        if priority:
            pod["spec"]["priorityClassName"] = priority
        create(plane, "default", pod)
        eventually(lambda: pods(plane, "default")["web"], condition)
        if low:
            eventually(lambda: leaving(plane))
            eventually(lambda: pods(plane, "default")["web"]["status"].get("nominatedNodeName"))
        now = pods(plane, "default")
        told = condition(now["web"])
        result = {
            "node": now["web"]["spec"].get("nodeName"),
            "told": (told["status"], told.get("reason"), told.get("message")),
            "nominated": now["web"]["status"].get("nominatedNodeName"),
            "leaving": leaving(plane),
            "heard": first_attempt(self._webhook.heard),
        }
        plane.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
        eventually(lambda: pods(plane, "default"), lambda found: not found)
        return result


@pytest.fixture
def both(
    own_cluster: OwnCluster,
    start_scheduler: StartScheduler,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> Iterator[Both]:
    """`request.param` has the extenders of the configuration, without their addresses."""
    plane = own_cluster(nodes=3, kwok=False, controller_manager=False)
    plane.kubectl("create", "priorityclass", "high", "--value=1000")
    with Webhook(lambda said: bind(plane, "default", said["PodName"], said["Node"])).running() as webhook:
        extenders = [{"urlPrefix": webhook.url} | settings for settings in request.param]
        stock, ours = tmp_path / "stock.yaml", tmp_path / "ours.yaml"
        stock.write_text(configuration(STOCK, extenders, str(plane.kubeconfig)))
        ours.write_text(configuration(OURS, extenders))
        with (tmp_path / "stock.log").open("w") as log:
            process = subprocess.Popen(
                [build() / "kube-scheduler", f"--config={stock}", "--secure-port=0"], stderr=log
            )
        try:
            start_scheduler(plane, "--config", str(ours))
            yield Both(plane, webhook)
        finally:
            process.kill()
            process.wait()


def end(plane: ControlPlane, name: str) -> None:
    plane.kubectl("delete", "pod", name, "--grace-period=0", "--force")


def leaving(plane: ControlPlane) -> list[str]:
    found = pods(plane, "default").items()
    return sorted(name for name, pod in found if "deletionTimestamp" in pod["metadata"])


def first_attempt(heard: Sequence[tuple[str, Said]]) -> list[tuple[str, Said]]:
    """Return the calls of the first attempt: a rejected pod is tried again after any event."""
    calls = [(verb, said) for verb, said in heard if "web" in (said.get("PodName"), _name(said.get("Pod")))]
    again = [number for number, (verb, _) in enumerate(calls) if number and verb == calls[0][0]]
    return calls[: again[0]] if again else calls


def _name(pod: dict[str, Any] | None) -> str:
    return pod["metadata"]["name"] if pod else ""


def same(first: dict[str, Any], second: dict[str, Any]) -> None:
    """Check that both pods had the same result, and that kube-scheduler sent all that we sent."""
    assert {k: v for k, v in second.items() if k != "heard"} == {
        k: v for k, v in first.items() if k != "heard"
    }
    assert [verb for verb, _ in second["heard"]] == [verb for verb, _ in first["heard"]]
    for (_, theirs), (verb, ours) in zip(first["heard"], second["heard"], strict=True):
        assert theirs.keys() == ours.keys()
        if verb != "bind":
            assert ours["Pod"]["metadata"]["annotations"] == theirs["Pod"]["metadata"]["annotations"]
            assert contains(theirs["Pod"], _lasting(ours["Pod"]))
        nodes = {node["metadata"]["name"]: node for node in (theirs.get("Nodes") or {}).get("items", ())}
        of_ours = (ours.get("Nodes") or {}).get("items", ())
        assert {node["metadata"]["name"] for node in of_ours} == nodes.keys()
        for node in of_ours:
            assert contains(nodes[node["metadata"]["name"]], _lasting(node))
        assert sorted(ours.get("NodeNames") or ()) == sorted(theirs.get("NodeNames") or ())


def _lasting(thing: dict[str, Any]) -> dict[str, Any]:
    spec = {key: value for key, value in thing["spec"].items() if key != "schedulerName"}
    metadata = {key: value for key, value in thing["metadata"].items() if key not in _PASSING}
    return {"metadata": metadata, "spec": spec}


WHOLE = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 5}
BY_NAME = {**WHOLE, "preemptVerb": "preempt", "nodeCacheCapable": True}
# No program listens there.
DEAD = {"urlPrefix": "http://127.0.0.1:9/", "filterVerb": "filter", "ignorable": True}


@pytest.mark.parametrize("both", [[WHOLE], [DEAD, BY_NAME]], indirect=True, ids=["whole", "by name"])
def test_extenders_filter_and_rank_nodes_for_both_schedulers_alike(both: Both) -> None:
    stock, ours = both(labels={"only": "node-1"})
    same(stock, ours)
    assert ours["node"] == "node-1"

    stock, ours = both(labels={"likes": "node-2"})
    same(stock, ours)
    assert ours["node"] == "node-2"

    stock, ours = both(labels={"only": "nowhere"})
    same(stock, ours)
    assert ours["told"][2].startswith("0/3 nodes are available: 3 node(s) were not among the chosen.")

    stock, ours = both(labels={"broken": "out-of-order"})
    same(stock, ours)
    assert ours["told"] == ("False", "SchedulerError", "out-of-order")


@pytest.mark.parametrize("both", [[BY_NAME]], indirect=True)
def test_an_extender_that_spares_a_node_decides_who_is_evicted(both: Both) -> None:
    stock, ours = both(labels={"spare": "node-0"}, cpu="8", priority="high", low=3)
    assert ours["leaving"] in (["low-1"], ["low-2"])
    assert stock["leaving"] in (["low-1"], ["low-2"])
    for result in (stock, ours):
        (_, said), *_ = [heard for heard in result["heard"] if heard[0] == "preempt"]
        assert sorted(said["NodeNameToMetaVictims"]) == ["node-0", "node-1", "node-2"]


@pytest.mark.parametrize("both", [[{"bindVerb": "bind"}]], indirect=True)
def test_an_extender_that_binds_receives_the_pod_and_the_node(both: Both) -> None:
    stock, ours = both(labels={})
    for result in (stock, ours):
        ((verb, said),) = result["heard"]
        assert verb == "bind"
        assert said["Node"] == result["node"] is not None
    assert stock["told"] == ours["told"]
