"""ImageLocality: prefers nodes that already have the pod's images, because the pod starts sooner there.

An image counts with its size, scaled by the share of nodes that have it. Otherwise all pods would go to the
few nodes that pulled the image first.
"""

import numpy as np

from longshore.api import Pod
from longshore.cluster import Nodes, PodInfo
from longshore.cluster.arrays import Ints
from longshore.framework import MAX_SCORE, CycleState, Scope

NAME = "ImageLocality"

_MIB = 2**20
# Images that are smaller than this in total make no difference.
_SMALLEST = 23 * _MIB
# The most that the images of one container count.
_LARGEST = 1000 * _MIB


class ImageLocality:
    """Score: the size of the pod's images that the node has."""

    name = NAME
    scope = Scope.CLUSTER

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Ints | int:
        images = state.memo.get(NAME)
        if images is None:
            images = state.memo[NAME] = _images(pod.pod)
        cluster = nodes.cluster
        total: Ints | None = None
        for image in images:
            column = cluster.images.find(image)
            if not column.nodes:
                continue
            spread = column.nodes / cluster.node_count
            counted = (nodes.take(column.sizes) * spread).astype(np.int64)
            total = counted if total is None else total + counted
        if total is None:
            return 0
        spec = pod.pod.spec
        largest = _LARGEST * (len(spec.containers) + len(spec.init_containers))
        above = np.minimum(np.maximum(total, _SMALLEST), largest) - _SMALLEST
        return MAX_SCORE * above // (largest - _SMALLEST)


def _images(pod: Pod) -> list[str]:
    spec = pod.spec
    images = [container.image for container in (*spec.init_containers, *spec.containers)]
    images += (volume.image.reference for volume in spec.volumes if volume.image is not None)
    return [full_name(image) for image in images]


def full_name(image: str) -> str:
    """Return the name with its tag, `latest` by default. A colon before the last slash belongs to a port."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
