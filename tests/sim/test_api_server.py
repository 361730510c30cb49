"""The API server's rules that matter to the engine."""

import pytest

from longshore.api import PersistentVolume, Pod, PodCondition
from longshore.engine import Bind, Conflict, Evict, Gone, Nominate, PatchObject, SetCondition, Succeeded
from longshore.sim.api_server import SimulatedApiServer
from longshore.testing import node, pod, pv

WEB = pod("web")
BIND = Bind.of(WEB, "n1")


def cluster_with(*pods: Pod) -> SimulatedApiServer:
    cluster = SimulatedApiServer()
    for each in pods:
        cluster.put_pod(each)
    return cluster


def test_a_bind_takes_effect_and_the_watch_reports_it() -> None:
    cluster = cluster_with(WEB)
    outcome, (change,) = cluster.perform(BIND)
    assert outcome == Succeeded()
    assert change.old is not None
    assert (change.old.spec.node_name, change.object.spec.node_name) == ("", "n1")
    assert change.object.status.conditions == (PodCondition(type="PodScheduled", status="True"),)


@pytest.mark.parametrize(
    "existing",
    [WEB.on("n2"), WEB.uid("second"), WEB.deleting(), WEB.gates("wait")],
    ids=["bound", "recreated", "deleting", "gated"],
)
def test_a_bind_that_the_api_server_refuses_changes_nothing(existing: Pod) -> None:
    cluster = cluster_with(existing)
    before = dict(cluster.pods)
    outcome, changes = cluster.perform(BIND)
    assert isinstance(outcome, Conflict)
    assert changes == []
    assert cluster.pods == before


def test_a_bind_of_a_pod_that_is_gone() -> None:
    outcome, changes = cluster_with().perform(BIND)
    assert (type(outcome), changes) == (Gone, [])


def test_a_condition_replaces_the_one_of_its_type() -> None:
    cluster = cluster_with(WEB.condition("Other", "True").condition("PodScheduled", "False", message="old"))
    new = PodCondition(type="PodScheduled", status="False", message="new")
    cluster.perform(SetCondition.of(WEB, new))
    assert cluster.pods["default/web"].status.conditions == (PodCondition(type="Other", status="True"), new)


def test_a_condition_is_not_written_to_a_successor() -> None:
    cluster = cluster_with(WEB.uid("second"))
    outcome, changes = cluster.perform(SetCondition.of(WEB, PodCondition(type="PodScheduled")))
    assert (type(outcome), changes) == (Gone, [])


def test_a_bound_pod_stays_bound_when_it_is_updated() -> None:
    cluster = cluster_with(WEB.on("n1"))
    assert cluster.put_pod(WEB.labels(a="b")).object.spec.node_name == "n1"
    assert cluster.put_pod(WEB.uid("second")).object.spec.node_name == ""


def test_versions_grow_and_missing_uids_are_given() -> None:
    cluster = SimulatedApiServer()
    first = cluster.put_pod(WEB.uid("")).object.metadata
    second = cluster.put_pod(WEB.uid("")).object.metadata
    other = cluster.put_pod(pod("other").uid("")).object.metadata
    assert first.uid == second.uid != other.uid
    assert "" not in (first.uid, other.uid)
    assert int(first.resource_version) < int(second.resource_version) < int(other.resource_version)


def test_deleting_an_absent_object_changes_nothing() -> None:
    cluster = SimulatedApiServer()
    assert cluster.delete_pod("default/web") is None
    assert cluster.delete_node("n1") is None
    cluster.put_node(node("n1"))
    assert cluster.delete_node("n1") is not None


def test_a_nomination_is_written_with_a_condition_or_alone_and_taken_away() -> None:
    cluster = cluster_with(WEB)
    cluster.perform(SetCondition.of(WEB, PodCondition(type="PodScheduled"), "n1"))
    assert cluster.pods["default/web"].status.nominated_node_name == "n1"
    cluster.perform(SetCondition.of(WEB, PodCondition(type="PodScheduled")))
    assert cluster.pods["default/web"].status.nominated_node_name == "n1"
    cluster.perform(Nominate.of(WEB, ""))
    assert cluster.pods["default/web"].status.nominated_node_name == ""


def test_an_evicted_pod_has_a_condition_and_stays_until_it_has_stopped() -> None:
    cluster = cluster_with(WEB.on("n1"))
    why = PodCondition(type="DisruptionTarget", status="True")
    outcome, (change,) = cluster.perform(Evict.of(WEB, why))
    assert outcome == Succeeded()
    assert change.object.metadata.deletion_timestamp is not None
    assert change.object.status.conditions == (why,)
    assert "default/web" in cluster.pods


def test_a_successor_is_not_evicted() -> None:
    cluster = cluster_with(WEB.uid("second"))
    outcome, changes = cluster.perform(Evict.of(WEB, PodCondition(type="DisruptionTarget")))
    assert (type(outcome), changes) == (Gone, [])


def test_a_patch_is_merged_into_the_object() -> None:
    cluster = SimulatedApiServer()
    cluster.put(pv("disk").labels(a="1", b="2"))
    patch = {"metadata": {"labels": {"b": None, "c": "3"}}}
    outcome, (change,) = cluster.perform(PatchObject(PersistentVolume, "", "disk", patch))
    assert outcome == Succeeded()
    assert change.object.metadata.labels == {"a": "1", "c": "3"}


def test_a_patch_of_an_older_version_is_a_conflict() -> None:
    cluster = SimulatedApiServer()
    version = cluster.put(pv("disk")).object.metadata.resource_version
    cluster.put(pv("disk").labels(a="1"))
    patch = {"metadata": {"resourceVersion": version, "labels": {"a": "2"}}}
    outcome, changes = cluster.perform(PatchObject(PersistentVolume, "", "disk", patch))
    assert (type(outcome), changes) == (Conflict, [])
    assert type(cluster.perform(PatchObject(PersistentVolume, "", "none", {}))[0]) is Gone
