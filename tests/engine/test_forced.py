"""A PreFilter that forces a node, and plugins that listen to changes of pods."""

from typing import Any

from tests.engine.stage import Stage, room

from longshore.api import PersistentVolume, Pod
from longshore.cluster import ClusterState, PodInfo
from longshore.engine.answers.explanation import explain
from longshore.framework import CycleState, Forced, Handle, Status
from longshore.testing import pod, pv, pvc, storage_class

HOST = "kubernetes.io/hostname"


class Insists:
    name = "Insists"

    def __init__(self, node: str) -> None:
        self._node = node

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> Forced:
        return Forced(self._node)


class Refuses:
    name = "Refuses"

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> Status:
        return Status.unresolvable("never")


class Listens:
    name = "Listens"
    handle: Handle

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> None:
        if not self.heard:
            self.handle.on_pod_change(self._hear, self.name)

    def _hear(self, old: Pod | None, new: Pod | None) -> None:
        nodes = ["-" if each is None else each.spec.node_name for each in (old, new)]
        self.heard.append((nodes[0], nodes[1]))
        raise ValueError("not me")


def test_a_forced_pod_goes_to_the_node_although_filters_refuse_it() -> None:
    stage = Stage(Insists("n1"), defaults=True)
    full = pod("full").requests(cpu="4").on("n1")
    stage.create(room("n1").taint("no").unschedulable(), room("n2"), full, pod("web").requests(cpu="8"))
    stage.run(until=1.0)
    assert stage.node_of("web") == "n1"


def test_rejections_by_pre_filters_after_a_forced_node_are_ignored() -> None:
    stage = Stage(Insists("n1"), Refuses())
    stage.create(room("n1"), pod("web"))
    stage.run(until=1.0)
    assert stage.node_of("web") == "n1"


def test_pods_of_the_same_shape_that_were_decided_before_make_no_difference() -> None:
    class OnlyTheSecond(Insists):
        def pre_filter(self, state: CycleState, pod: PodInfo, cluster: ClusterState) -> Any:
            return Forced("n1") if pod.pod.metadata.name == "second" else None

    stage = Stage(OnlyTheSecond("n1"), defaults=True)
    stage.create(room("n1", "500m"), room("n2"), pod("first").requests(cpu="1"))
    stage.run(until=1.0)
    stage.create(pod("second").requests(cpu="1"))
    stage.run(until=2.0)
    assert (stage.node_of("first"), stage.node_of("second")) == ("n2", "n1")


def test_a_node_that_does_not_exist_cannot_be_forced() -> None:
    stage = Stage(Insists("nowhere"))
    stage.create(room("n1"), pod("web"))
    stage.run(until=1.0)
    assert stage.message("web") == "0/1 nodes are available: 1 node(s) didn't satisfy plugin(s) [Insists]."


def test_volumes_of_a_forced_pod_are_provisioned_on_its_node() -> None:
    stage = Stage(Insists("n2"), defaults=True)
    stage.create(
        room("n1"),
        room("n2").taint("no"),
        storage_class("local").waiting(),
        pv("disk", storage_class="local").reachable_from(HOST, "n2"),
        pvc("data", storage_class="local"),
        pod("web").claim("data"),
    )
    stage.run(until=1.0)
    (written,) = stage.cluster.others[PersistentVolume].values()
    assert isinstance(written, PersistentVolume)
    assert written.spec.claim_ref is not None


def test_an_explanation_of_a_forced_pod_names_only_its_node() -> None:
    stage = Stage(Insists("n1"), defaults=True)
    stage.create(room("n1", "1"), room("n2"))
    stage.run(until=1.0)
    found = explain(stage.engine.chooser("longshore"), PodInfo.of(pod("web").requests(cpu="2")))
    assert found.feasible == ("n1",)


def test_a_pod_listener_is_called_for_every_pod_and_its_errors_are_reported() -> None:
    listener = Listens()
    stage = Stage(listener)
    stage.create(room("n1"), pod("first"))
    stage.run(until=1.0)
    stage.create(pod("second"))
    stage.run(until=2.0)
    assert listener.heard[0] == ("", "n1")
    assert ("-", "") in listener.heard
    assert stage.told("second")[0] == (
        "FailedScheduling",
        """running PodChange plugin "Listens": ValueError('not me')""",
    )


def test_a_pod_is_scheduled_although_a_pod_listener_failed_for_it() -> None:
    stage = Stage(Listens())
    stage.create(room("n1"), pod("first"))
    stage.run(until=1.0)
    stage.create(pod("second"))
    stage.run(until=2.0)
    assert stage.node_of("second") == "n1"
    assert stage.condition("second").status == "True"
    # There is no such event for a pod that has its node.
    assert [reason for reason, _ in stage.told("second")] == ["FailedScheduling", "Scheduled"]
