from typing import Any

import pytest
from tests.plugins.storage import PreBindDriver, Storage, landed, reasons, verdicts

from longshore.api import ObjectReference, PersistentVolume, PersistentVolumeClaim, Pod
from longshore.cluster import PodInfo
from longshore.framework import SKIP, Code, CycleState, Status
from longshore.framework.effects import Conflict, Failed, PatchObject, Succeeded, Until
from longshore.plugins.volumebinding.plugin import NO_VOLUME, TIMED_OUT, VolumeBinding
from longshore.testing import node, pod, pv, pvc, storage_class
from longshore.testing.metadata import replace

HOST = "kubernetes.io/hostname"
SELECTED, BY_CONTROLLER = "volume.kubernetes.io/selected-node", "pv.kubernetes.io/bound-by-controller"
DATA = pvc("data", storage_class="static")
NEW = pvc("new", storage_class="dynamic")
DISK = pv("disk", storage_class="static")
BOTH = pod("web").claim("data").claim("new")


class Attempt:
    """A pod on its way to node n1, up to the end of Reserve."""

    def __init__(
        self, incoming: Pod, *objects: Any, storage: Storage | None = None, plugin: Any = None
    ) -> None:
        self.storage = storage or Storage(
            storage_class("static").waiting(),
            storage_class("dynamic", provisioner="csi.example.com").waiting(),
            *objects,
        )
        cluster = self.storage.cluster
        for name in ("n1", "n2"):
            cluster.add_node(node(name))
        self.plugin: VolumeBinding = plugin or VolumeBinding(handle=self.storage.handle)
        self.state, self.pod = CycleState(), PodInfo.of(incoming)
        self.refused = verdicts(self.plugin, incoming, cluster, self.state)
        if "n1" not in self.refused:
            cluster.assume(self.pod, "n1")
            self.plugin.reserve(self.state, self.pod, "n1")

    def pre_bind(self) -> PreBindDriver:
        return PreBindDriver(self.plugin.pre_bind(self.state, self.pod, "n1"))

    def undo(self) -> None:
        self.plugin.unreserve(self.state, self.pod, "n1")
        self.storage.cluster.forget(self.pod.pod)

    def told(self, kind: Any, key: str) -> Any:
        found = self.storage.cluster.get(kind, key)
        assert found is not None
        return found

    def bind(self, claim: str, volume: str) -> None:
        """Bind claim and volume, as the volume controller does."""
        now: PersistentVolumeClaim = self.told(PersistentVolumeClaim, f"default/{claim}")
        annotations = {**now.metadata.annotations, "pv.kubernetes.io/bind-completed": "yes"}
        self.storage.put(
            replace(
                now,
                metadata=replace(now.metadata, annotations=annotations),
                spec=replace(now.spec, volume_name=volume),
            )
        )


def test_prebind_is_skipped_when_all_claims_are_bound() -> None:
    attempt = Attempt(pod("web").claim("data"), DATA.bound_to("disk"), DISK.claimed_by("data"))
    assert attempt.plugin.pre_bind_pre_flight(attempt.state, attempt.pod, "n1") is SKIP
    driver = attempt.pre_bind().run(landed)
    assert (driver.finished, driver.status, driver.effects) == (True, None, [])


def test_prebind_is_skipped_for_pods_without_claims() -> None:
    attempt = Attempt(pod("web"))
    assert attempt.plugin.pre_bind_pre_flight(attempt.state, attempt.pod, "n1") is SKIP
    attempt.undo()


def test_prebind_writes_volume_and_claim_and_waits_for_the_controller() -> None:
    attempt = Attempt(BOTH, DATA, NEW, DISK)
    assert attempt.plugin.pre_bind_pre_flight(attempt.state, attempt.pod, "n1") is None
    disk, new, data = (
        attempt.told(PersistentVolume, "disk"),
        attempt.told(PersistentVolumeClaim, "default/new"),
        attempt.told(PersistentVolumeClaim, "default/data"),
    )
    driver = attempt.pre_bind().run(landed)
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": "default",
        "name": "data",
        "uid": data.metadata.uid,
        "resourceVersion": data.metadata.resource_version,
    }
    *writes, wait = driver.effects
    assert writes == [
        PatchObject(
            PersistentVolume,
            "",
            "disk",
            {
                "metadata": {
                    "resourceVersion": disk.metadata.resource_version,
                    "annotations": {BY_CONTROLLER: "yes"},
                },
                "spec": {"claimRef": reference},
            },
        ),
        PatchObject(
            PersistentVolumeClaim,
            "default",
            "new",
            {
                "metadata": {
                    "resourceVersion": new.metadata.resource_version,
                    "annotations": {SELECTED: "n1"},
                }
            },
        ),
    ]
    assert isinstance(wait, Until)
    assert (wait.seconds, wait.timeout) == (600.0, TIMED_OUT)

    # The watch reports our writes, then those of the volume controller.
    assert driver.look() is None
    for write in writes:
        assert isinstance(write, PatchObject)
        attempt.storage.apply(write)
    assert driver.look() is None
    attempt.bind("data", "disk")
    assert driver.look() is None
    attempt.bind("new", "made")
    assert driver.look() is None
    attempt.storage.put(pv("made", storage_class="dynamic").claimed_by("new"))
    assert driver.look() == Succeeded()
    assert (driver.finished, driver.status) == (True, None)


def test_the_smallest_reachable_volume_is_used() -> None:
    volumes = [
        pv("large", storage="9Gi", storage_class="static"),
        pv("fitting", storage="2Gi", storage_class="static"),
        pv("elsewhere", storage="1Gi", storage_class="static").reachable_from(HOST, "n2"),
    ]
    attempt = Attempt(pod("web").claim("data"), DATA, *volumes)
    write = attempt.pre_bind().run(landed).effects[0]
    assert isinstance(write, PatchObject)
    assert write.name == "fitting"


def test_a_volume_reserved_by_a_user_gets_the_uid_but_no_annotation() -> None:
    kept = replace(DISK, spec=replace(DISK.spec, claim_ref=ObjectReference("", "default", "data")))
    write = Attempt(pod("web").claim("data"), DATA, kept).pre_bind().run(landed).effects[0]
    assert isinstance(write, PatchObject)
    assert "annotations" not in write.patch["metadata"]
    assert write.patch["spec"]["claimRef"]["uid"] == DATA.metadata.uid


def test_writes_of_an_earlier_attempt_are_not_repeated() -> None:
    objects = [DATA, DISK.claimed_by("data").annotations(**{BY_CONTROLLER: "yes"})]
    objects.append(NEW.annotations(**{SELECTED: "n1"}))
    attempt = Attempt(BOTH, *objects)
    driver = attempt.pre_bind().run(landed)
    assert [type(effect) for effect in driver.effects] == [Until]
    attempt.bind("data", "disk")
    attempt.storage.put(pv("made", storage_class="dynamic"))
    attempt.bind("new", "made")
    assert driver.look() == Succeeded()


def test_a_conflict_ends_the_attempt() -> None:
    attempt = Attempt(BOTH, DATA, NEW, DISK)
    driver = attempt.pre_bind().run(lambda _: Conflict("the object has been modified"))
    assert driver.status == Status.error("the object has been modified")
    assert len(driver.effects) == 1


def test_the_wait_ends_with_a_timeout() -> None:
    driver = Attempt(BOTH, DATA, NEW, DISK).pre_bind().run(landed)
    driver.time_out()
    assert driver.status == Status.error("binding volumes: context deadline exceeded")


def written() -> tuple[Attempt, PreBindDriver]:
    """A pod whose writes were accepted and reported by the watch."""
    attempt = Attempt(BOTH, DATA, NEW, DISK)
    driver = attempt.pre_bind().run(landed)
    for effect in driver.effects:
        if isinstance(effect, PatchObject):
            attempt.storage.apply(effect)
    assert driver.look() is None
    return attempt, driver


def unclaimed(attempt: Attempt) -> None:
    attempt.storage.put(DISK)


def out_of_reach(attempt: Attempt) -> None:
    disk = attempt.told(PersistentVolume, "disk")
    away = DISK.reachable_from(HOST, "n2").spec.node_affinity
    attempt.storage.put(replace(disk, spec=replace(disk.spec, node_affinity=away)))


def made_elsewhere(attempt: Attempt) -> None:
    attempt.storage.put(pv("made").reachable_from(HOST, "n2"))
    attempt.bind("data", "disk")
    attempt.bind("new", "made")


def not_made(attempt: Attempt) -> None:
    attempt.bind("data", "disk")
    attempt.storage.put(NEW.annotations(other="yes"))


def annotations_gone(attempt: Attempt) -> None:
    attempt.bind("data", "disk")
    attempt.storage.put(NEW)


def new_claim_gone(attempt: Attempt) -> None:
    attempt.bind("data", "disk")
    attempt.storage.remove(NEW)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (unclaimed, 'ClaimRef got reset for pv "disk"'),
        (out_of_reach, 'pv "disk" node affinity doesn\'t match node "n1": no matching NodeSelectorTerms'),
        (made_elsewhere, 'pv "made" node affinity doesn\'t match node "n1": no matching NodeSelectorTerms'),
        (not_made, 'provisioning failed for PVC "new"'),
        (annotations_gone, 'selectedNode annotation reset for PVC "new"'),
        (new_claim_gone, 'failed to check provisioning pvc: persistentvolumeclaims "default/new" not found'),
        (lambda a: a.storage.remove(DISK), 'failed to check binding: persistentvolumes "disk" not found'),
        (
            lambda a: a.storage.remove(DATA),
            'failed to check binding: persistentvolumeclaims "default/data" not found',
        ),
        (lambda a: a.storage.cluster.remove_node("n1"), 'failed to get node "n1": node "n1" not found'),
        (
            lambda a: a.storage.cluster.remove_pod(a.pod.pod),
            'pod does not exist any more: pod "web" not found',
        ),
    ],
)
def test_the_wait_ends_when_the_volumes_cannot_be_bound_any_more(event: Any, words: str) -> None:
    attempt, driver = written()
    event(attempt)
    assert driver.look() == Failed(words)
    assert driver.status == Status.error(f"binding volumes: {words}")
    assert driver.status.code is Code.ERROR


# Reservations and other pods.


def test_a_reserved_volume_is_not_given_to_another_claim() -> None:
    other = pvc("other", storage_class="static")
    attempt = Attempt(pod("web").claim("data"), DATA, DISK, other)
    rival = pod("rival").claim("other")
    cluster = attempt.storage.cluster
    both = {"n1": (NO_VOLUME,), "n2": (NO_VOLUME,)}
    assert reasons(attempt.plugin, rival, cluster) == both
    attempt.undo()
    assert reasons(attempt.plugin, rival, cluster) == {}
    attempt.undo()


def test_a_written_volume_stays_reserved_even_if_the_attempt_fails() -> None:
    other = pvc("other", storage_class="static")
    attempt = Attempt(pod("web").claim("data"), DATA, DISK, other)
    driver = attempt.pre_bind().run(landed)
    driver.time_out()
    attempt.undo()
    rival = pod("rival").claim("other")
    assert set(reasons(attempt.plugin, rival, attempt.storage.cluster)) == {"n1", "n2"}
    # The reference to the claim was removed again: the volume is free once the watch reports it.
    attempt.storage.put(DISK)
    assert reasons(attempt.plugin, rival, attempt.storage.cluster) == {}


def test_a_claim_with_a_selected_node_keeps_its_other_pods_there() -> None:
    attempt = Attempt(pod("web").claim("new"), NEW)
    friend = pod("friend").claim("new")
    assert reasons(attempt.plugin, friend, attempt.storage.cluster) == {"n2": (NO_VOLUME,)}
    attempt.undo()
    assert reasons(attempt.plugin, friend, attempt.storage.cluster) == {}


def test_a_pod_that_shares_a_claim_writes_the_selected_node_too() -> None:
    first = Attempt(pod("web").claim("new"), NEW)
    second = Attempt(pod("friend").claim("new"), storage=first.storage, plugin=first.plugin)
    assert len(first.pre_bind().run(landed).effects) == 2
    # The first write has won; the second attempt is repeated later.
    driver = second.pre_bind().run(lambda _: Conflict("modified"))
    assert driver.status == Status.error("modified")
