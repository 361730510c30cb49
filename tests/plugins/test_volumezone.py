from typing import Any

import pytest
from tests.plugins.storage import Storage, verdicts

from longshore.api import PersistentVolumeClaim, Pod, StorageClass
from longshore.cluster import PodInfo
from longshore.framework import Action, ClusterEvent, Code, Resource
from longshore.plugins.volumezone import NO_CLAIM_NAME, NO_VOLUME, NO_VOLUME_NOR_CLASS, REASON, VolumeZone
from longshore.testing import node, pod, pv, pvc, storage_class

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE, OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"

WEB = pod("web").claim("data")


def zonal(volume_labels: dict[str, str], *nodes: dict[str, str]) -> set[str]:
    """The nodes n0, n1, … that are rejected for a pod whose volume has the labels."""
    storage = Storage(pvc("data").bound_to("disk"), pv("disk").labels(**volume_labels))
    for number, labels in enumerate(nodes):
        storage.cluster.add_node(node(f"n{number}").labels(**labels))
    found = verdicts(VolumeZone(), WEB, storage.cluster)
    assert all(s.reasons == (REASON,) for s in found.values())
    assert all(s.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE for s in found.values())
    return set(found)


@pytest.mark.parametrize("key", [ZONE, REGION, OLD_ZONE, OLD_REGION])
def test_the_node_must_be_in_the_zone_of_the_volume(key: str) -> None:
    assert zonal({key: "a"}, {key: "a"}, {key: "b"}) == {"n1"}


def test_a_volume_in_several_zones_is_reachable_from_each() -> None:
    assert zonal({ZONE: "a__b"}, {ZONE: "a"}, {ZONE: "b"}, {ZONE: "c"}) == {"n2"}


def test_a_node_without_zone_and_region_is_feasible() -> None:
    assert zonal({ZONE: "a"}, {}, {"disk": "ssd"}) == set()


def test_a_node_with_only_a_zone_lacks_the_region_of_the_volume() -> None:
    assert zonal({ZONE: "a", REGION: "r"}, {ZONE: "a"}, {ZONE: "a", REGION: "r"}) == {"n0"}


def test_an_old_label_of_the_volume_matches_the_new_label_of_the_node() -> None:
    assert zonal({OLD_ZONE: "a", OLD_REGION: "r"}, {ZONE: "a", REGION: "r"}, {ZONE: "b", REGION: "r"}) == {
        "n1"
    }


def test_an_old_label_of_the_node_takes_precedence() -> None:
    assert zonal({OLD_ZONE: "a"}, {OLD_ZONE: "b", ZONE: "a"}) == {"n0"}


def test_a_new_label_of_the_volume_does_not_match_the_old_label_of_the_node() -> None:
    assert zonal({ZONE: "a"}, {OLD_ZONE: "a"}) == {"n0"}


def test_a_label_with_an_empty_zone_is_ignored() -> None:
    assert zonal({ZONE: "a____b"}, {ZONE: "c"}) == set()


@pytest.mark.parametrize(
    ("claim", "classes", "reason"),
    [
        (pvc("other"), [], 'persistentvolumeclaim "data" not found'),
        (pvc("data").bound_to("gone"), [], 'persistentvolume "gone" not found'),
        (pvc("data"), [], NO_VOLUME_NOR_CLASS),
        (pvc("data", storage_class="fast"), [], 'storageclass.storage.k8s.io "fast" not found'),
        (pvc("data", storage_class="fast"), [storage_class("fast")], NO_VOLUME),
        (
            pvc("data", storage_class="fast"),
            [StorageClass(metadata=storage_class("fast").metadata)],
            'VolumeBindingMode not set for StorageClass "fast"',
        ),
    ],
)
def test_a_claim_with_a_problem_rejects_the_pod(
    claim: PersistentVolumeClaim, classes: list[Any], reason: str
) -> None:
    storage = Storage(claim, *classes)
    [status] = verdicts(VolumeZone(), WEB, storage.cluster).values()
    assert (status.code, status.reasons) == (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,))


def test_a_claim_without_a_name_rejects_the_pod() -> None:
    [status] = verdicts(VolumeZone(), pod("web").claim(""), Storage().cluster).values()
    assert status.reasons == (NO_CLAIM_NAME,)


def test_a_volume_that_waits_for_the_pod_has_no_zone_yet() -> None:
    storage = Storage(pvc("data", storage_class="fast"), storage_class("fast").waiting())
    storage.cluster.add_node(node("n1").labels(**{ZONE: "a"}))
    assert verdicts(VolumeZone(), WEB, storage.cluster) == {}


def test_pods_without_named_claims_are_not_affected() -> None:
    plugin = VolumeZone()
    assert plugin.concerns(PodInfo.of(WEB))
    assert not plugin.concerns(PodInfo.of(pod("web")))
    assert not plugin.concerns(PodInfo.of(pod("web").ephemeral_claim("scratch")))


def wakes(waiting: Pod, resource: Resource, old: Any, new: Any) -> bool:
    event = ClusterEvent(resource, Action.ADD if old is None else Action.UPDATE_OTHER, old, new)
    return any(
        on.matches(event) and (on.hint is None or on.hint(waiting, old, new)) for on in VolumeZone().wakes_on
    )


def test_a_new_or_changed_claim_wakes_the_pod() -> None:
    claims = Resource.PERSISTENT_VOLUME_CLAIM
    assert wakes(WEB, claims, None, pvc("data"))
    assert wakes(WEB, claims, pvc("data"), pvc("data").bound_to("disk"))
    assert not wakes(WEB, claims, None, pvc("other"))
    assert not wakes(WEB, claims, None, pvc("data", namespace="elsewhere"))


def test_wakes_when_a_class_that_waits_is_added() -> None:
    assert wakes(WEB, Resource.STORAGE_CLASS, None, storage_class("fast").waiting())
    assert not wakes(WEB, Resource.STORAGE_CLASS, None, storage_class("fast"))


def test_wakes_when_a_volume_is_added_or_moves() -> None:
    volumes, there = Resource.PERSISTENT_VOLUME, pv("disk").labels(**{ZONE: "a"})
    assert wakes(WEB, volumes, None, there)
    assert wakes(WEB, volumes, there, pv("disk").labels(**{ZONE: "b"}))
    assert not wakes(WEB, volumes, there, there.labels(tier="gold"))
