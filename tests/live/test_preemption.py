"""Preemption on the real API server. The tests play the kubelet: pods end when the test says so."""

import json
from typing import Any

from tests.live.conftest import StartScheduler
from tests.live.pods import condition, create, events, manifest, placed, pods
from tests.waiting import eventually

from longshore.dev import ControlPlane
from longshore.dev.fixtures import OwnCluster

PRIORITIES = [
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "preemptionPolicy": policy,
    }
    for name, value, policy in (
        ("high", 1000, "PreemptLowerPriority"),
        ("higher", 2000, "PreemptLowerPriority"),
        ("polite", 1000, "Never"),
    )
]


def cluster(own_cluster: OwnCluster, *, nodes: int = 1) -> ControlPlane:
    plane = own_cluster(nodes=nodes, kwok=False, controller_manager=False)  # 8 cores each
    listed = {"apiVersion": "v1", "kind": "List", "items": PRIORITIES}
    plane.kubectl("create", "-f", "-", input=json.dumps(listed))
    return plane


def prioritized(name: str, *, cpu: str, priority: str = "", node: str = "") -> dict[str, Any]:
    pod = manifest(name, cpu=cpu)
    if priority:
        pod["spec"]["priorityClassName"] = priority
    if node:
        pod["spec"]["nodeName"] = node
    return pod


def end(plane: ControlPlane, name: str) -> None:
    """Delete the pod as a kubelet does when all containers have stopped."""
    plane.kubectl("delete", "pod", name, "--grace-period=0", "--force")


def test_the_victim_ends_in_its_own_time_and_the_room_is_kept_for_the_preemptor(
    own_cluster: OwnCluster, start_scheduler: StartScheduler
) -> None:
    plane = cluster(own_cluster)
    victim = prioritized("victim", cpu="6", node="node-0")
    victim["spec"]["terminationGracePeriodSeconds"] = 77
    create(plane, "default", victim, prioritized("bystander", cpu="1", node="node-0"))
    start_scheduler(plane)
    create(plane, "default", prioritized("urgent", cpu="6", priority="high"))
    eventually(
        lambda: pods(plane, "default")["victim"]["metadata"], lambda found: "deletionTimestamp" in found
    )

    now = pods(plane, "default")
    assert now["victim"]["metadata"]["deletionGracePeriodSeconds"] == 77
    told = condition(now["victim"], "DisruptionTarget")
    assert (told["status"], told["reason"]) == ("True", "PreemptionByScheduler")
    assert told["message"] == "longshore: preempting to accommodate a higher priority pod"
    assert "deletionTimestamp" not in now["bystander"]["metadata"]
    assert now["urgent"]["status"]["nominatedNodeName"] == "node-0"
    told = condition(now["urgent"])
    assert (told["status"], told["reason"], told["observedGeneration"]) == ("False", "Unschedulable", 1)
    assert told["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")

    create(plane, "default", prioritized("small", cpu="1"), prioritized("equal", cpu="2", priority="polite"))
    eventually(
        lambda: pods(plane, "default"),
        lambda found: all(condition(found[name]) for name in ("small", "equal")),
    )
    assert placed(plane, "default") == {"default/victim": "node-0", "default/bystander": "node-0"}

    # Other pods get the free room, except for the room of the nominated pod.
    end(plane, "victim")
    eventually(lambda: placed(plane, "default"), lambda found: len(found) == 3)
    assert set(placed(plane, "default")) == {"default/bystander", "default/urgent", "default/small"}
    urgent = pods(plane, "default")["urgent"]
    assert "nominatedNodeName" not in urgent["status"]
    told_of_victim = [(e["reason"], e["note"]) for e in events(plane, "default", "victim")]
    note = f"Preempted by pod {urgent['metadata']['uid']} on node node-0"
    assert told_of_victim == [("Preempted", note)]
    reasons = [e["reason"] for e in events(plane, "default", "urgent")]
    assert sorted(reasons) == ["FailedScheduling", "Scheduled"]


def test_a_pod_that_never_preempts_waits(own_cluster: OwnCluster, start_scheduler: StartScheduler) -> None:
    plane = cluster(own_cluster)
    create(plane, "default", prioritized("lesser", cpu="6", node="node-0"))
    start_scheduler(plane)
    create(plane, "default", prioritized("polite", cpu="6", priority="polite"))
    eventually(lambda: pods(plane, "default")["polite"], condition)
    now = pods(plane, "default")
    assert condition(now["polite"])["message"] == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
        "preemption: not eligible due to preemptionPolicy=Never."
    )
    assert "nominatedNodeName" not in now["polite"]["status"]
    assert "deletionTimestamp" not in now["lesser"]["metadata"]


def test_a_promise_gives_way_to_a_pod_of_higher_priority(
    own_cluster: OwnCluster, start_scheduler: StartScheduler
) -> None:
    plane = cluster(own_cluster)
    create(plane, "default", prioritized("victim", cpu="6", node="node-0"))
    start_scheduler(plane)
    create(plane, "default", prioritized("first", cpu="6", priority="high"))
    eventually(
        lambda: pods(plane, "default")["first"]["status"],
        lambda found: found.get("nominatedNodeName") == "node-0",
    )
    create(plane, "default", prioritized("second", cpu="6", priority="higher"))
    eventually(lambda: pods(plane, "default")["second"], condition)
    end(plane, "victim")
    eventually(lambda: placed(plane, "default"), lambda found: "default/second" in found)
    eventually(
        lambda: pods(plane, "default")["first"]["status"], lambda found: "nominatedNodeName" not in found
    )
    assert set(placed(plane, "default")) == {"default/second"}


def test_a_restarted_scheduler_knows_that_victims_are_on_their_way_out(
    own_cluster: OwnCluster, start_scheduler: StartScheduler
) -> None:
    """The second one must not evict another pod for the same preemptor."""
    plane = cluster(own_cluster, nodes=2)
    lesser = [prioritized(f"lesser-{n}", cpu="6", node=f"node-{n}") for n in range(2)]
    create(plane, "default", *lesser)
    first = start_scheduler(plane)
    create(plane, "default", prioritized("urgent", cpu="6", priority="high"))
    eventually(lambda: pods(plane, "default")["urgent"]["status"], lambda found: "nominatedNodeName" in found)
    eventually(lambda: leaving(plane), lambda found: len(found) == 1)
    assert first.stop() == 0
    (victim,) = leaving(plane)

    second = start_scheduler(plane)
    create(plane, "default", manifest("later", cpu="1"))
    eventually(lambda: placed(plane, "default"), lambda found: "default/later" in found)
    waits = "preemption: not eligible due to a terminating pod on the nominated node."
    eventually(
        lambda: pods(plane, "default")["urgent"], lambda found: condition(found)["message"].endswith(waits)
    )
    assert leaving(plane) == [victim]
    end(plane, victim)
    eventually(lambda: placed(plane, "default"), lambda found: "default/urgent" in found)
    assert second.process.poll() is None


def leaving(plane: ControlPlane) -> list[str]:
    found = pods(plane, "default").items()
    return [name for name, pod in found if "deletionTimestamp" in pod["metadata"]]
