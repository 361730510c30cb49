"""Where a volume can be provisioned for a claim: in the topology of its class, given enough capacity."""

from longshore.api import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolumeClaim,
    StorageClass,
    value,
)
from longshore.cluster import Nodes
from longshore.cluster.arrays import Bools
from longshore.plugins.volumes.claims import class_of_claim
from longshore.plugins.volumes.topology import Places, allowed, labeled

NO_PROVISIONER = "kubernetes.io/no-provisioner"


def in_place(claim: PersistentVolumeClaim, nodes: Nodes) -> Bools | bool:
    """Return the nodes for which the class provisions volumes."""
    storage_class = nodes.cluster.get(StorageClass, class_of_claim(claim))
    if storage_class is None or storage_class.provisioner in ("", NO_PROVISIONER):
        return False
    selector = allowed(storage_class.allowed_topologies)
    return True if selector is None else Places(selector).where(nodes)


def with_room(claim: PersistentVolumeClaim, nodes: Nodes) -> Bools | bool:
    """Return the nodes that reach enough capacity; all of them if the driver does not report capacity."""
    cluster = nodes.cluster
    storage_class = cluster.get(StorageClass, class_of_claim(claim))
    wanted = claim.spec.resources.requests.get("storage")
    driver = None if storage_class is None else cluster.get(CSIDriver, storage_class.provisioner)
    if storage_class is None or wanted is None or driver is None or not driver.spec.storage_capacity:
        return True
    size = value(wanted)
    places, name = Places(), storage_class.metadata.name
    for pool in cluster.objects(CSIStorageCapacity):
        if pool.storage_class_name != name or (largest := largest_volume(pool)) is None or largest < size:
            continue
        topology = pool.node_topology
        if topology is not None and len(topology.match_labels) == 1 and not topology.match_expressions:
            # Most pools belong to a single node, or to a zone.
            [(key, text)] = topology.match_labels.items()
            places.add_label(key, (text,))
        else:
            places.add(labeled(topology))
    return places.where(nodes)


def largest_volume(pool: CSIStorageCapacity) -> int | None:
    text = pool.capacity if pool.maximum_volume_size is None else pool.maximum_volume_size
    return None if text is None else value(text)
