from random import Random
from typing import Any

import numpy as np
import pytest
from tests.plugins.storage import Storage, reasons, verdicts

from longshore.api import (
    AWSElasticBlockStoreVolumeSource,
    GCEPersistentDiskVolumeSource,
    ObjectMeta,
    PersistentVolumeSpec,
    Pod,
    Volume,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
)
from longshore.cluster import PodInfo
from longshore.framework import Code, CycleState, Status
from longshore.plugins.nodevolumelimits.plugin import REASON, NodeVolumeLimits
from longshore.plugins.nodevolumelimits.volumes import NO_CLAIM_NAME, UnusableVolume
from longshore.testing import csi_node, node, pod, pv, pvc, storage_class
from longshore.testing.metadata import replace

DRIVER, EBS = "csi.example.com", "ebs.csi.aws.com"


def world(*, limit: int | None = 2, driver: str = DRIVER) -> Storage:
    """A node with a limit for the driver, and claims a to e that are bound to volumes of the driver."""
    storage = Storage(
        csi_node("n1").driver(driver, limit=limit),
        storage_class("fast", provisioner=DRIVER).waiting(),
        storage_class("old-ebs", provisioner="kubernetes.io/aws-ebs").waiting(),
        storage_class("old-file", provisioner="kubernetes.io/azure-file").waiting(),
    )
    for name in "abcde":
        storage.put(pvc(name).bound_to(f"pv-{name}"), pv(f"pv-{name}").csi(DRIVER, f"handle-{name}"))
    storage.cluster.add_node(node("n1"))
    return storage


def refused(storage: Storage, incoming: Pod) -> bool:
    found = reasons(NodeVolumeLimits(), incoming, storage.cluster)
    assert found in ({}, {"n1": (REASON,)})
    return bool(found)


def ebs_volume(volume_id: str) -> Volume:
    return Volume(volume_id[-5:], aws_elastic_block_store=AWSElasticBlockStoreVolumeSource(volume_id))


def attachment(name: str, volume: str, *, on: str = "n1", attacher: str = DRIVER) -> VolumeAttachment:
    source = VolumeAttachmentSource(volume)
    return VolumeAttachment(metadata=ObjectMeta(name=name), spec=VolumeAttachmentSpec(attacher, on, source))


def test_a_node_takes_as_many_volumes_as_its_limit() -> None:
    storage = world()
    storage.cluster.add_pod(pod("old").claim("a").on("n1"))
    assert not refused(storage, pod("web").claim("b"))
    assert refused(storage, pod("web").claim("b").claim("c"))


def test_the_status_allows_preemption() -> None:
    storage = world(limit=0)
    [status] = verdicts(NodeVolumeLimits(), pod("web").claim("a"), storage.cluster).values()
    assert status.code is Code.UNSCHEDULABLE


def test_a_volume_that_the_node_already_has_counts_once() -> None:
    storage = world()
    storage.cluster.add_pod(pod("old").claim("a").claim("b").on("n1"))
    storage.cluster.add_pod(pod("older").claim("a").on("n1"))
    assert not refused(storage, pod("web").claim("a"))
    assert refused(storage, pod("web").claim("c"))


def test_a_node_without_a_limit_for_the_driver_takes_any_number() -> None:
    assert not refused(world(limit=None), pod("web").claim("a"))
    assert not refused(world(limit=0, driver="another.example.com"), pod("web").claim("a"))


def test_a_node_with_unknown_drivers_takes_any_number() -> None:
    storage = world(limit=0)
    storage.remove(csi_node("n1"))
    assert not refused(storage, pod("web").claim("a"))


def test_a_volume_yet_to_be_provisioned_counts_for_the_driver_of_its_class() -> None:
    storage = world(limit=1)
    storage.put(pvc("new", storage_class="fast"), pvc("newer", storage_class="fast"))
    assert not refused(storage, pod("web").claim("new"))
    storage.cluster.add_pod(pod("old").claim("new").on("n1"))
    assert refused(storage, pod("web").claim("newer"))
    assert not refused(storage, pod("web").claim("new"))


def test_a_claim_whose_volume_is_gone_counts_for_its_class() -> None:
    storage = world(limit=0)
    storage.put(pvc("lost", storage_class="fast").bound_to("no-such-volume"))
    assert refused(storage, pod("web").claim("lost"))


def test_a_claim_without_a_class_or_with_an_unknown_one_does_not_count() -> None:
    storage = world(limit=0)
    storage.put(pvc("plain"), pvc("unknown", storage_class="no-such-class"))
    assert not refused(storage, pod("web").claim("plain").claim("unknown"))


def test_a_missing_claim_of_another_pod_does_not_count() -> None:
    storage = world(limit=1)
    storage.cluster.add_pod(pod("old").claim("vanished").on("n1"))
    assert not refused(storage, pod("web").claim("a"))


def test_a_claim_of_an_ephemeral_volume_counts() -> None:
    storage = world(limit=0)
    web = pod("web").ephemeral_claim("scratch")
    storage.put(pvc("web-scratch", storage_class="fast").owner("Pod", "web"))
    assert refused(storage, web)


def test_a_claim_that_was_not_created_for_the_ephemeral_volume_is_an_error() -> None:
    storage = world()
    storage.put(pvc("web-scratch", storage_class="fast"))
    words = r"PVC default/web-scratch was not created for pod default/web \(pod is not owner\)"
    with pytest.raises(UnusableVolume, match=words):
        reasons(NodeVolumeLimits(), pod("web").ephemeral_claim("scratch"), storage.cluster)


def test_a_foreign_claim_of_another_pod_on_the_node_is_an_error() -> None:
    storage = world()
    storage.put(pvc("old-scratch", storage_class="fast"))
    storage.cluster.add_pod(pod("old").ephemeral_claim("scratch").on("n1"))
    with pytest.raises(UnusableVolume, match="was not created for pod default/old"):
        reasons(NodeVolumeLimits(), pod("web").claim("a"), storage.cluster)


def test_a_missing_claim_is_reported_for_each_node() -> None:
    found = verdicts(NodeVolumeLimits(), pod("web").claim("none"), world().cluster)
    words = 'looking up PVC default/none: persistentvolumeclaim "none" not found'
    assert found == {"n1": Status.unresolvable(words)}


def test_a_claim_without_a_name_is_an_error() -> None:
    with pytest.raises(UnusableVolume, match=NO_CLAIM_NAME):
        reasons(NodeVolumeLimits(), pod("web").claim(""), world().cluster)


def test_an_in_tree_disk_counts_for_the_driver_that_replaced_it() -> None:
    storage = world(limit=1, driver=EBS)
    storage.cluster.add_pod(pod("old").volume(ebs_volume("aws://zone/vol-00001")).on("n1"))
    assert refused(storage, pod("web").volume(ebs_volume("vol-00002")))
    assert not refused(storage, pod("web").volume(ebs_volume("vol-00001")))


def test_an_in_tree_persistent_volume_equals_the_disk_named_in_a_pod() -> None:
    storage = world(limit=1, driver=EBS)
    disk = pv("disk")
    spec = PersistentVolumeSpec(aws_elastic_block_store=AWSElasticBlockStoreVolumeSource("vol-00001"))
    storage.put(replace(disk, spec=spec), pvc("data").bound_to("disk"))
    storage.cluster.add_pod(pod("old").volume(ebs_volume("vol-00001")).on("n1"))
    assert not refused(storage, pod("web").claim("data"))
    assert refused(storage, pod("web").volume(ebs_volume("vol-00002")))


@pytest.mark.parametrize(
    ("zones", "handle"),
    [
        ("", "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/one"),
        ("us-east1-b", "projects/UNSPECIFIED/zones/us-east1-b/disks/one"),
        ("us-east1-b__us-east1-c", "projects/UNSPECIFIED/regions/us-east1/disks/one"),
    ],
)
def test_the_handle_of_a_gce_disk_depends_on_its_zones(zones: str, handle: str) -> None:
    gce = "pd.csi.storage.gke.io"
    storage = world(limit=1, driver=gce)
    spec = PersistentVolumeSpec(gce_persistent_disk=GCEPersistentDiskVolumeSource("one"))
    disk = pv("disk").labels(**({"topology.kubernetes.io/zone": zones} if zones else {}))
    storage.put(replace(disk, spec=spec), pvc("data").bound_to("disk"))
    storage.put(pv("same").csi(gce, handle), pvc("old").bound_to("same"))
    storage.cluster.add_pod(pod("old").claim("old").on("n1"))
    assert not refused(storage, pod("web").claim("data"))


def test_an_in_tree_class_counts_for_its_driver_if_that_is_counted() -> None:
    storage = world(limit=0, driver=EBS)
    storage.put(pvc("disk", storage_class="old-ebs"), pvc("file", storage_class="old-file"))
    assert refused(storage, pod("web").claim("disk"))
    assert not refused(storage, pod("web").claim("file"))


def test_an_attached_volume_counts_even_without_a_pod() -> None:
    storage = world(limit=2)
    storage.put(attachment("one", "pv-a"), attachment("two", "pv-b"))
    assert refused(storage, pod("web").claim("c"))
    storage.cluster.add_pod(pod("old").claim("a").on("n1"))
    assert refused(storage, pod("web").claim("c"))
    storage.remove(attachment("two", "pv-b"))
    assert not refused(storage, pod("web").claim("c"))


def test_attachments_of_other_nodes_or_of_unknown_volumes_do_not_count() -> None:
    storage = world(limit=1)
    storage.put(
        attachment("one", "pv-a", on="n2"),
        attachment("two", "vanished"),
        attachment("three", "pv-b", attacher=""),
    )
    assert not refused(storage, pod("web").claim("c"))


def test_the_counts_follow_changes_between_attempts() -> None:
    storage, plugin = world(limit=1), NodeVolumeLimits()
    web, old = pod("web").claim("a"), pod("old").claim("b").on("n1")
    assert reasons(plugin, web, storage.cluster) == {}
    storage.cluster.add_pod(old)
    assert reasons(plugin, web, storage.cluster) == {"n1": (REASON,)}
    storage.put(pvc("b").bound_to("pv-a"))
    assert reasons(plugin, web, storage.cluster) == {}
    storage.put(pvc("b").bound_to("pv-c"))
    storage.cluster.remove_pod(old)
    assert reasons(plugin, web, storage.cluster) == {}


def test_the_filter_counts_the_pods_of_a_dry_run() -> None:
    storage, plugin = world(limit=1), NodeVolumeLimits()
    old = PodInfo.of(pod("old").claim("b").on("n1"))
    storage.cluster.add_pod(old.pod)
    state, web = CycleState(), PodInfo.of(pod("web").claim("a"))
    plugin.pre_filter(state, web, storage.cluster)
    here = storage.cluster.one_node(storage.cluster.row("n1") or 0)

    def exceeded(imagined: CycleState) -> bool:
        [rejection] = plugin.filter(imagined, web, here.as_nodes())
        return bool(np.all(rejection.where))

    assert exceeded(state)
    without = state.clone()
    plugin.remove_pod(without, web, old, here)
    assert not exceeded(without)
    with_another = without.clone()
    plugin.add_pod(with_another, web, PodInfo.of(pod("other").claim("c")), here)
    assert exceeded(with_another)
    with_the_same = without.clone()
    plugin.add_pod(with_the_same, web, PodInfo.of(pod("other").claim("a")), here)
    assert not exceeded(with_the_same)
    assert not exceeded(without)


def test_the_columns_agree_with_a_full_recount() -> None:
    random = Random(7)
    storage, kept = world(limit=3), NodeVolumeLimits()
    for name in ("n2", "n3"):
        storage.cluster.add_node(node(name))
    for step in range(300):
        name, number = random.choice("abcde"), random.randrange(1, 4)
        here = f"n{number}"
        match random.randrange(7):
            case 0 | 1:
                storage.cluster.add_pod(pod(f"p{step}").claim(name).claim(random.choice("abcde")).on(here))
            case 2:
                for gone in list(storage.cluster.pods())[:2]:
                    storage.cluster.remove_pod(gone)
            case 3:
                storage.put(pvc(name, storage_class="fast"))
            case 4:
                storage.put(pvc(name).bound_to(f"pv-{random.choice('abcde')}"))
            case 5:
                storage.put(csi_node(here).driver(DRIVER, limit=random.randrange(4)))
            case _:
                storage.put(attachment(f"attached-{name}", f"pv-{random.choice('abcde')}", on=here))
        web = pod("web").claim(random.choice("abcde"))
        assert reasons(kept, web, storage.cluster) == reasons(NodeVolumeLimits(), web, storage.cluster)


def test_pods_without_attachable_volumes_are_not_affected() -> None:
    plugin = NodeVolumeLimits()
    for other in (
        pod("web").claim("a"),
        pod("web").ephemeral_claim("s"),
        pod("web").volume(ebs_volume("vol-1")),
    ):
        assert plugin.concerns(PodInfo.of(other))
    assert not plugin.concerns(PodInfo.of(pod("web").volume(Volume("tmp"))))


def hint(place: int, waiting: Pod, old: Any, new: Any) -> bool:
    found = NodeVolumeLimits().wakes_on[place].hint
    assert found is not None
    return found(waiting, old, new)


def test_wakes_when_a_limit_is_raised() -> None:
    def limited(limit: int | None) -> Any:
        return csi_node("n1").driver(DRIVER, limit=limit)

    web = pod("web").claim("a")
    assert hint(1, web, limited(1), limited(2))
    assert hint(1, web, csi_node("n1"), limited(1))
    assert not hint(1, web, limited(2), limited(1))
    assert not hint(1, web, limited(2), limited(2))


def test_wakes_when_a_pod_with_volumes_left_its_node() -> None:
    web = pod("web").claim("a")
    assert hint(2, web, pod("old").claim("b").on("n1"), None)
    assert hint(2, web, pod("old").ephemeral_claim("b").nominated("n1"), None)
    assert hint(2, web, pod("old").volume(ebs_volume("vol-1")).on("n1"), None)
    assert not hint(2, web, pod("old").claim("b"), None)
    assert not hint(2, web, pod("old").on("n1"), None)


def test_a_new_claim_of_the_pod_wakes_it() -> None:
    assert hint(3, pod("web").claim("a"), None, pvc("a"))
    assert hint(3, pod("web").ephemeral_claim("s"), None, pvc("web-s"))
    assert not hint(3, pod("web").claim("a"), None, pvc("b"))
    assert not hint(3, pod("web").claim("a"), None, pvc("a", namespace="elsewhere"))


def test_wakes_when_a_volume_is_detached() -> None:
    assert hint(4, pod("web").claim("a"), attachment("one", "pv-b"), None)
    inline = pod("web").volume(ebs_volume("vol-1"))
    assert hint(4, inline, attachment("one", "x", attacher=EBS), None)
    assert not hint(4, inline, attachment("one", "x"), None)
