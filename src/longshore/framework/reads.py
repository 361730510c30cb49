"""What a plugin reads of pods, beyond what is kept of each of them.

    class Placement:
        name = "Placement"
        reads = Reads(pod_annotations=("example.com/placement",))

The scheduler keeps what any of its plugins declares, in a real cluster, in the simulator and on a record
alike. Whatever a plugin reads without such a declaration raises `UndeclaredRead`.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

from longshore.api import Pod, Volume
from longshore.api.kept import KeptAnnotations, KeptConditions, Names, UndeclaredRead

__all__ = ["EVERYTHING", "NOTHING", "Kept", "Reads", "UndeclaredRead", "kept_of"]

_replace = msgspec.structs.replace

# The conditions that are kept of every pod, by what state it is in.
_UNASSIGNED = ("PodScheduled",)
_ASSIGNED = ("PodResizePending",)
_ENDING = ("DisruptionTarget",)


class Reads(msgspec.Struct, frozen=True):
    """The annotations and the types of the conditions of pods that a plugin reads.

    `*` stands for all of them, and `example.com/*` for all whose names begin with `example.com/`. Without a
    declaration, plugins can read the condition PodScheduled of a pod without a node, PodResizePending of a
    pod with a node, and DisruptionTarget of a pod that is being deleted.

    Pods that differ in their annotations or conditions alone count as alike. A Filter or a Score that reads
    any of these must have the scope CLUSTER, which is the default.
    """

    pod_annotations: tuple[str, ...] = ()
    pod_conditions: tuple[str, ...] = ()

    @classmethod
    def of(cls, reads: Iterable["Reads"]) -> "Reads":
        """Return what any of these reads."""
        annotations: set[str] = set()
        conditions: set[str] = set()
        for each in reads:
            annotations.update(each.pod_annotations)
            conditions.update(each.pod_conditions)
        return cls(tuple(sorted(annotations)), tuple(sorted(conditions)))


NOTHING = Reads()
EVERYTHING = Reads(("*",), ("*",))


class Kept:
    """What is kept of the pods of a scheduler whose plugins read this."""

    def __init__(self, reads: Reads) -> None:
        self.annotation_names = Names(reads.pod_annotations, what="annotation", field="pod_annotations")
        declared = reads.pod_conditions
        self._condition_names = {
            (assigned, ending): Names(
                (*declared, *(_ASSIGNED if assigned else _UNASSIGNED), *(_ENDING if ending else ())),
                what="condition",
                field="pod_conditions",
            )
            for assigned in (False, True)
            for ending in (False, True)
        }
        self.declares_conditions = bool(declared)

    def condition_names(self, *, assigned: bool, ending: bool) -> Names:
        """Return the types of the conditions that are kept of a pod in this state."""
        return self._condition_names[assigned, ending]

    def annotations(self, found: Mapping[str, str]) -> KeptAnnotations:
        """Return those of the annotations that are kept."""
        names = self.annotation_names
        if not names or not found:
            return names.no_annotations
        return KeptAnnotations(names, {name: value for name, value in found.items() if name in names})

    def pod(self, pod: Pod) -> Pod:
        """Return the pod with what is kept of it. It is the pod itself if it came from a watch."""
        meta, spec, status = pod.metadata, pod.spec, pod.status
        annotations = meta.annotations
        if type(annotations) is KeptAnnotations and annotations.names is self.annotation_names:
            return pod
        names = self.condition_names(
            assigned=bool(spec.node_name), ending=meta.deletion_timestamp is not None
        )
        conditions = names.no_conditions
        if status.conditions:
            conditions = KeptConditions(names, [each for each in status.conditions if each.type in names])
        status = _replace(status, conditions=conditions)
        if meta.generation == 1:
            # The pod was never resized, so its node has granted it what its spec requests.
            status = _replace(status, container_statuses=(), init_container_statuses=())
            status = _replace(status, resources=None, allocated_resources={})
        if spec.volumes:
            read = tuple(volume for volume in spec.volumes if volume != Volume(volume.name))
            spec = spec if len(read) == len(spec.volumes) else _replace(spec, volumes=read)
        meta = _replace(meta, annotations=self.annotations(annotations))
        return _replace(pod, metadata=meta, spec=spec, status=status)


@lru_cache(maxsize=32)
def kept_of(reads: Reads) -> Kept:
    return Kept(reads)
