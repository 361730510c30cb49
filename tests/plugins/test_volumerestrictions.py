import msgspec
import pytest
from tests.plugins.storage import Storage, verdicts

from longshore.api import (
    AWSElasticBlockStoreVolumeSource,
    GCEPersistentDiskVolumeSource,
    ISCSIVolumeSource,
    Pod,
    RBDVolumeSource,
    Volume,
)
from longshore.cluster import PodInfo
from longshore.framework import Code, CycleState
from longshore.plugins.volumerestrictions import DISK_CONFLICT, ONE_POD_CONFLICT, VolumeRestrictions
from longshore.testing import PodBuilder, node, pod, pvc

GCE = Volume("disk", gce_persistent_disk=GCEPersistentDiskVolumeSource("one"))
GCE_READ = Volume("disk", gce_persistent_disk=GCEPersistentDiskVolumeSource("one", read_only=True))
GCE_OTHER = Volume("disk", gce_persistent_disk=GCEPersistentDiskVolumeSource("two"))
EBS = Volume("disk", aws_elastic_block_store=AWSElasticBlockStoreVolumeSource("vol-1"))
EBS_OTHER = Volume("disk", aws_elastic_block_store=AWSElasticBlockStoreVolumeSource("vol-2"))
ISCSI = Volume("disk", iscsi=ISCSIVolumeSource("iqn.1"))
ISCSI_READ = Volume("disk", iscsi=ISCSIVolumeSource("iqn.1", read_only=True))
ISCSI_OTHER = Volume("disk", iscsi=ISCSIVolumeSource("iqn.2"))
RBD = Volume("disk", rbd=RBDVolumeSource(("a", "b"), "image", "pool"))
RBD_SHARED_MONITOR = Volume("disk", rbd=RBDVolumeSource(("b", "c"), "image", "pool"))
RBD_READ = Volume("disk", rbd=RBDVolumeSource(("b",), "image", "pool", read_only=True))
RBD_OTHER_MONITOR = Volume("disk", rbd=RBDVolumeSource(("c",), "image", "pool"))
RBD_OTHER_POOL = Volume("disk", rbd=RBDVolumeSource(("a",), "image", "other"))

CONFLICTS = [
    (GCE, GCE),
    (GCE, GCE_READ),
    (GCE_READ, GCE),
    (EBS, EBS),
    (ISCSI, ISCSI),
    (ISCSI, ISCSI_READ),
    (RBD, RBD_SHARED_MONITOR),
    (RBD, RBD_READ),
]
NO_CONFLICTS = [
    (GCE, GCE_OTHER),
    (GCE_READ, GCE_READ),
    (GCE, EBS),
    (EBS, EBS_OTHER),
    (ISCSI, ISCSI_OTHER),
    (ISCSI_READ, ISCSI_READ),
    (RBD, RBD_OTHER_MONITOR),
    (RBD, RBD_OTHER_POOL),
    (RBD_READ, RBD_READ),
]


def one_pod(name: str) -> PodBuilder:
    return pod(name).claim("data")


def world(*pods: Pod) -> Storage:
    storage = Storage(pvc("data", access_modes=("ReadWriteOncePod",)), pvc("shared"))
    for name in ("n1", "n2"):
        storage.cluster.add_node(node(name))
    for bound in pods:
        storage.cluster.add_pod(bound)
    return storage


@pytest.mark.parametrize(("ours", "theirs"), CONFLICTS)
def test_a_disk_in_use_on_the_node_rules_it_out(ours: Volume, theirs: Volume) -> None:
    storage = world(pod("holder").volume(theirs).on("n1"))
    found = verdicts(VolumeRestrictions(), pod("web").volume(ours), storage.cluster)
    assert {name: (s.code, s.reasons) for name, s in found.items()} == {
        "n1": (Code.UNSCHEDULABLE, (DISK_CONFLICT,))
    }


@pytest.mark.parametrize(("ours", "theirs"), NO_CONFLICTS)
def test_disks_that_can_be_shared_do_not_conflict(ours: Volume, theirs: Volume) -> None:
    storage = world(pod("holder").volume(theirs).on("n1"))
    assert verdicts(VolumeRestrictions(), pod("web").volume(ours), storage.cluster) == {}


def test_a_read_write_once_pod_claim_in_use_rules_out_all_nodes() -> None:
    storage = world(one_pod("holder").on("n1"))
    found = verdicts(VolumeRestrictions(), one_pod("web"), storage.cluster)
    assert {name: (s.code, s.reasons) for name, s in found.items()} == dict.fromkeys(
        ("n1", "n2"), (Code.UNSCHEDULABLE, (ONE_POD_CONFLICT,))
    )


def test_a_read_write_once_pod_claim_is_free_again() -> None:
    holder = one_pod("holder").on("n1")
    storage = world(holder)
    storage.cluster.remove_pod(holder)
    assert verdicts(VolumeRestrictions(), one_pod("web"), storage.cluster) == {}


def test_the_claim_of_a_later_pod_of_that_name_is_counted_again() -> None:
    storage = world(one_pod("holder").on("n1"))
    storage.cluster.add_pod(pod("holder").uid("another").claim("shared").on("n1"))
    assert verdicts(VolumeRestrictions(), one_pod("web"), storage.cluster) == {}


def test_a_claim_of_that_name_in_another_namespace_is_another_claim() -> None:
    storage = world(pod("holder", namespace="elsewhere").claim("data").on("n1"))
    assert verdicts(VolumeRestrictions(), one_pod("web"), storage.cluster) == {}


def test_a_claim_that_pods_may_share_does_not_conflict() -> None:
    storage = world(pod("holder").claim("shared").on("n1"))
    assert verdicts(VolumeRestrictions(), pod("web").claim("shared"), storage.cluster) == {}


def test_a_claim_that_does_not_exist_rejects_the_pod() -> None:
    [status] = verdicts(VolumeRestrictions(), pod("web").claim("none"), world().cluster).values()
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.reasons == ('persistentvolumeclaim "none" not found',)


def test_a_conflict_of_disks_is_reported_before_that_of_claims() -> None:
    holder = one_pod("holder")
    holder = msgspec.structs.replace(
        holder, spec=msgspec.structs.replace(holder.spec, volumes=(*holder.spec.volumes, EBS), node_name="n1")
    )
    found = verdicts(VolumeRestrictions(), pod("web").claim("data").volume(EBS), world(holder).cluster)
    assert (found["n1"].reasons, found["n2"].reasons) == ((DISK_CONFLICT,), (ONE_POD_CONFLICT,))


def test_evicting_the_pod_that_uses_a_claim_frees_it() -> None:
    plugin, web, holder = (
        VolumeRestrictions(),
        PodInfo.of(one_pod("web")),
        PodInfo.of(one_pod("holder").on("n1")),
    )
    storage = world(holder.pod)
    state = CycleState()
    plugin.pre_filter(state, web, storage.cluster)
    here = storage.cluster.one_node(storage.cluster.row("n1") or 0)
    imagined = state.clone()
    plugin.remove_pod(imagined, web, holder, here)
    assert plugin.filter_node(imagined, web, here) is None
    assert plugin.filter_node(state, web, here) == ONE_POD_CONFLICT
    plugin.add_pod(imagined, web, holder, here)
    assert plugin.filter_node(imagined, web, here) == ONE_POD_CONFLICT


def test_pods_without_such_volumes_are_not_affected() -> None:
    plugin = VolumeRestrictions()
    assert plugin.concerns(PodInfo.of(pod("web").volume(RBD)))
    assert plugin.concerns(PodInfo.of(pod("web").claim("data")))
    assert not plugin.concerns(PodInfo.of(pod("web").ephemeral_claim("scratch").volume(Volume("tmp"))))


@pytest.mark.parametrize(
    ("waiting", "left", "wakes"),
    [
        *[(pod("web").volume(ours), pod("gone").volume(theirs), True) for ours, theirs in CONFLICTS],
        *[(pod("web").volume(ours), pod("gone").volume(theirs), False) for ours, theirs in NO_CONFLICTS],
        (one_pod("web"), one_pod("gone"), True),
        (one_pod("web"), pod("gone").claim("other"), False),
        (one_pod("web"), pod("gone", namespace="elsewhere").claim("data"), False),
        (pod("web").volume(EBS), pod("gone", namespace="elsewhere").volume(EBS), False),
    ],
)
def test_wakes_when_a_conflicting_pod_is_gone(waiting: Pod, left: Pod, wakes: bool) -> None:
    hint = VolumeRestrictions().wakes_on[0].hint
    assert hint is not None
    assert hint(waiting, left, None) is wakes


def test_a_new_claim_of_the_pod_wakes_it() -> None:
    hint = VolumeRestrictions().wakes_on[2].hint
    assert hint is not None
    assert hint(one_pod("web"), None, pvc("data"))
    assert not hint(one_pod("web"), None, pvc("other"))
    assert not hint(one_pod("web"), None, pvc("data", namespace="elsewhere"))
