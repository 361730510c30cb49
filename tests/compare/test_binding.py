"""Pods that another client binds, and pods that wait before they are bound."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.compare.agreement import agree
from tests.compare.api import Refused
from tests.compare.sides import Longshore
from tests.compare.two_schedulers import SIDES, Arena

from longshore.api import Pod
from longshore.dev.fixtures import Repetitions
from longshore.testing import NodeBuilder, PodBuilder, node, pod


def sized(name: str, cpu: str = "4") -> NodeBuilder:
    return node(name).allocatable(cpu=cpu, memory="8Gi")


def bind(arena: Arena, bound: Pod, to: str) -> None:
    path = f"/api/v1/namespaces/default/pods/{bound.metadata.name}/binding"
    body = {"metadata": {"name": bound.metadata.name}, "target": {"kind": "Node", "name": to}}
    arena.api.request("POST", path, body)


def test_a_pod_is_bound_by_another_client_while_it_waits(arena: Arena) -> None:
    """The pod counts on its node, even if the schedulers would have refused that node."""
    arena.become(sized("n1"), pod("there").requests(cpu="2").on("n1"))
    for side in SIDES:
        large = pod(f"large-{side}").requests(cpu="3")
        arena.add(large.scheduler(f"{side}-default"))
        arena.until(lambda: messages(arena, large), "it is refused")  # noqa: B023 - called before the next one
        bind(arena, large, "n1")
        assert "Insufficient cpu" in agree(arena, pod("small").requests(cpu="1")).kube.message
        arena.remove(large)


def test_a_pod_is_bound_by_another_client_at_the_same_time(arena: Arena, repetitions: Repetitions) -> None:
    """The pod is bound once, and counts on the node where it is."""
    for side in SIDES:
        arena.become(sized("n1", "128"), sized("n2", "128"))
        for number in range(repetitions(full=100, short=20)):
            raced = pod(f"raced-{number}").requests(cpu="1")
            arena.add(raced.scheduler(f"{side}-default"))
            try:
                bind(arena, raced, "n2")
            except Refused as refused:
                assert refused.status == 409
        pods = arena.api.listed(Pod, "fieldSelector=metadata.namespace%3Ddefault")
        on_n2 = [each for each in pods if each["spec"]["nodeName"] == "n2"]
        left = 128 - len(on_n2)
        asked = pod("rest").node_selector(**{"kubernetes.io/hostname": "n2"})
        assert agree(arena, asked.requests(cpu=str(left))).kube.node == "n2"
        assert not agree(arena, asked.requests(cpu=f"{left}001m")).kube.node


_PLUGIN = '''
from longshore.framework import Status, Wait


class Held:
    """Holds pods with the label `held` until one with the label `key` has a node, for a second at most."""

    name = "Held"

    def __init__(self, args, handle):
        self.handle = handle

    def permit(self, state, pod, node):
        if "held" in pod.labels:
            return Wait(1.0)
        if "key" in pod.labels:
            for uid in self.handle.waiting_pods():
                self.handle.allow(uid, self.name)
        return None


class Clumsy:
    """Fails before it binds a pod that has the label `unlucky`, the first time."""

    name = "Clumsy"

    def __init__(self, args, handle):
        self.seen = set()

    def pre_bind(self, state, pod, node):
        if "unlucky" in pod.labels and pod.pod.metadata.uid not in self.seen:
            self.seen.add(pod.pod.metadata.uid)
            return Status.error("dropped it")
        return None
'''


@pytest.fixture
def holding(arena: Arena, tmp_path: Path) -> Iterator[Longshore]:
    """An additional scheduler, with plugins at points that no default plugin of kube-scheduler uses."""
    file = tmp_path / "held.py"
    file.write_text(_PLUGIN)
    scheduler = Longshore(arena.plane, tmp_path, {"held": {}}, "--plugin", str(file))
    yield scheduler
    scheduler.stop()


def held(name: str, **labels: str) -> PodBuilder:
    return pod(name).requests(cpu="3").labels(**labels).scheduler("longshore-held")


def messages(arena: Arena, about: Pod) -> list[str]:
    return [event["message"] for event in arena.api.events(arena.api.get(about)["metadata"]["uid"])]


def test_a_pod_that_waits_in_permit_keeps_its_room(arena: Arena, holding: Longshore) -> None:
    arena.become(sized("n1"), sized("n2"))
    waiting, key = held("waiting", held="yes"), held("key", key="yes")
    arena.add(waiting)
    arena.until(lambda: arena.api.get(waiting)["status"].get("nominatedNodeName"), "it has a node in mind")
    arena.add(key)
    assert arena.until_bound(waiting) != arena.until_bound(key)


def test_a_pod_that_waits_too_long_in_permit_gives_its_room_back(arena: Arena, holding: Longshore) -> None:
    arena.become(sized("n1"))
    waiting = held("waiting", held="yes")
    arena.add(waiting)
    arena.until(lambda: messages(arena, waiting), "its time is over")
    reason = "rejected due to timeout after waiting 1s at plugin Held"
    assert messages(arena, waiting)[0] == f"0/1 nodes are available: 1 {reason}."
    arena.remove(waiting)
    assert agree(arena, pod("next").requests(cpu="4")).kube.node == "n1"


def test_a_pod_whose_pre_bind_failed_is_tried_again(arena: Arena, holding: Longshore) -> None:
    arena.become(sized("n1"))
    unlucky = held("unlucky", unlucky="yes")
    arena.add(unlucky)
    arena.until_bound(unlucky)
    arena.until(lambda: len(messages(arena, unlucky)) == 2, "people have read both")
    assert messages(arena, unlucky)[0] == 'running PreBind plugin "Clumsy": dropped it'
