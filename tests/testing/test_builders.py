"""Builders are what they build."""

import msgspec
import pytest

from longshore.api import Container, Node, Pod, ResourceRequirements
from longshore.testing import node, pod


def test_a_builder_is_a_pod_at_every_step() -> None:
    web = pod("web").requests(cpu="500m", memory="1Gi").labels(app="web").scheduler("mine")
    assert isinstance(web, Pod)
    assert web.key == "default/web"
    assert web.spec.scheduler_name == "mine"
    assert web.metadata.labels == {"app": "web"}
    main = Container(name="main", resources=ResourceRequirements(requests={"cpu": "500m", "memory": "1Gi"}))
    assert web.spec.containers == (main,)


def test_a_builder_is_not_changed_by_its_methods() -> None:
    plain = pod("web")
    plain.labels(a="b").requests(cpu="1").on("n1")
    assert plain == pod("web")


def test_uids_follow_from_names() -> None:
    assert pod("web").metadata.uid == pod("web").metadata.uid
    names = [pod("web"), pod("db"), pod("web", namespace="other"), pod("web").uid("second")]
    assert len({each.metadata.uid for each in names}) == 4


def test_a_node_adds_up_what_it_was_told() -> None:
    built = (
        node("n1")
        .allocatable(cpu="4")
        .allocatable(memory="8Gi")
        .labels(zone="a")
        .taint("k", effect="NoExecute")
    )
    assert isinstance(built, Node)
    assert built.status.allocatable == {"pods": "110", "cpu": "4", "memory": "8Gi"}
    assert built.metadata.labels == {"kubernetes.io/hostname": "n1", "zone": "a"}
    assert [(t.key, t.effect) for t in built.spec.taints] == [("k", "NoExecute")]
    assert built.ready
    assert node("n1").unschedulable().spec.unschedulable


@pytest.mark.parametrize(
    "built",
    [
        pod("a").init_container("i", cpu="1").sidecar("s", cpu="2").container("c").overhead(cpu="1m"),
        pod("b").gates("g").priority(3).pod_requests(memory="1Gi").phase("Running").deleting().on("n1"),
    ],
)
def test_a_builder_survives_the_way_through_json(built: Pod) -> None:
    body = msgspec.json.encode(built)
    assert msgspec.to_builtins(msgspec.json.decode(body, type=Pod)) == msgspec.to_builtins(built)
