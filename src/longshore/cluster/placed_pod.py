"""A pod on a node, with everything about it that is counted there."""

import msgspec

from longshore.api import Pod
from longshore.cluster.pod_info import PodInfo
from longshore.cluster.ports import HostPort, host_ports
from longshore.cluster.terms import Terms


class PlacedPod(msgspec.Struct, frozen=True, gc=False):
    """A pod that takes up room in a row, with the values that were counted for it."""

    info: PodInfo
    row: int
    assumed: bool
    ports: tuple[HostPort, ...]
    claims: tuple[str, ...]
    terms: Terms

    @classmethod
    def of(cls, info: PodInfo, row: int, *, assumed: bool) -> "PlacedPod":
        pod = info.pod
        return cls(info, row, assumed, host_ports(pod), _claims(pod), Terms.of_placed(pod))

    def counts_like(self, other: "PlacedPod") -> bool:
        """Whether the other one would be counted in exactly the same way."""
        a, b = self.info, other.info
        old, new = a.pod.metadata, b.pod.metadata
        return (
            self.row == other.row
            and a.requests == b.requests
            and a.nonzero == b.nonzero
            and old.labels == new.labels
            and (old.deletion_timestamp is None) == (new.deletion_timestamp is None)
            and a.pod.spec.priority == b.pod.spec.priority
            and self.ports == other.ports
            and a.pod.spec.volumes == b.pod.spec.volumes
            and self.terms == other.terms
        )


def _claims(pod: Pod) -> tuple[str, ...]:
    if not pod.spec.volumes:
        return ()
    sources = (volume.persistent_volume_claim for volume in pod.spec.volumes)
    return tuple(f"{pod.metadata.namespace}/{source.claim_name}" for source in sources if source is not None)
