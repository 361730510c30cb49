from longshore.api import PersistentVolume, PersistentVolumeClaim
from longshore.cluster import ClusterState
from longshore.testing import pod, pv


def test_the_keys_of_objects_that_changed_since_a_version_are_returned() -> None:
    cluster = ClusterState()
    assert cluster.changed_since(PersistentVolume, 0) == []
    cluster.put(PersistentVolume, None, pv("a"))
    seen = cluster.version(PersistentVolume)
    cluster.put(PersistentVolume, None, pv("b"))
    cluster.put(PersistentVolume, pv("a"), None)
    assert set(cluster.changed_since(PersistentVolume, seen) or ()) == {"a", "b"}
    assert cluster.changed_since(PersistentVolume, cluster.version(PersistentVolume)) == []
    assert cluster.changed_since(PersistentVolumeClaim, 0) == []


def test_changes_that_are_too_long_ago_are_not_known() -> None:
    cluster = ClusterState()
    for number in range(2000):
        cluster.put(PersistentVolume, None, pv(f"v{number}"))
    assert cluster.changed_since(PersistentVolume, 0) is None
    assert cluster.changed_since(PersistentVolume, 1999) == ["v1999"]


def test_a_claim_is_in_use_as_long_as_a_pod_names_it() -> None:
    cluster = ClusterState()
    first, second = pod("a").claim("data").on("n1"), pod("b").claim("data").on("n2")
    cluster.add_pod(first)
    cluster.add_pod(second)
    cluster.remove_pod(first)
    assert cluster.claim_in_use("default/data")
    cluster.remove_pod(second)
    assert not cluster.claim_in_use("default/data")
    assert not cluster.claim_in_use("default/other")
