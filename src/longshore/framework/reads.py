"""The annotations and conditions of pods that a plugin reads.

    class Placement:
        name = "Placement"
        reads = Reads(pod_annotations=("example.com/placement",))

What any plugin or controller of the scheduler declares is kept for all of them. All annotations are kept if
the scheduler calls HTTP extenders. Reading anything else raises `UndeclaredRead`. This is the same in a real
cluster, in the simulator and on a record.
"""

from collections.abc import Iterable, Mapping
from functools import cache

import msgspec

from longshore.api import Pod, PodCondition, Volume
from longshore.api.kept import KeptAnnotations, KeptConditions, Names, UndeclaredRead

__all__ = ["EVERYTHING", "NOTHING", "Kept", "Reads", "UndeclaredRead", "kept_of"]

_replace = msgspec.structs.replace

# The conditions that Longshore itself needs, by the state of the pod. They are kept whatever plugins declare,
# but plugins cannot read them undeclared: what a plugin can read does not depend on the state of the pod.
_UNASSIGNED = ("PodScheduled",)
_ASSIGNED = ("PodResizePending",)
_ENDING = ("DisruptionTarget",)


class Reads(msgspec.Struct, frozen=True):
    """The annotations and the types of the conditions of pods that a plugin reads.

    `*` stands for all of them, and `example.com/*` for all whose names begin with `example.com/`.

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


class ConditionTypes:
    """The types of the conditions that are kept of the pods in one state."""

    def __init__(self, kept: Names, *, readable: Names) -> None:
        self.kept = kept
        self._readable = readable

    def of(self, conditions: Iterable[PodCondition]) -> KeptConditions:
        """Return those of the conditions that are kept. Plugins can read the ones that are declared."""
        found = [each for each in conditions if each.type in self.kept]
        return KeptConditions(self._readable, found) if found else self._readable.no_conditions


class Kept:
    """What is kept of the pods of a scheduler whose plugins read this."""

    def __init__(self, reads: Reads) -> None:
        def conditions(*names: str) -> Names:
            return Names((*reads.pod_conditions, *names), what="condition", field="pod_conditions")

        self.annotation_names = Names(reads.pod_annotations, what="annotation", field="pod_annotations")
        readable = conditions()
        self._condition_types = {
            (assigned, ending): ConditionTypes(
                conditions(*(_ASSIGNED if assigned else _UNASSIGNED), *(_ENDING if ending else ())),
                readable=readable,
            )
            for assigned in (False, True)
            for ending in (False, True)
        }
        self.declares_conditions = bool(readable)

    def condition_types(self, *, assigned: bool, ending: bool) -> ConditionTypes:
        """Return the types of the conditions that are kept of a pod in this state."""
        return self._condition_types[assigned, ending]

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
        types = self.condition_types(
            assigned=bool(spec.node_name), ending=meta.deletion_timestamp is not None
        )
        status = _replace(status, conditions=types.of(status.conditions))
        if meta.generation == 1:
            # The pod was never resized, so its node has granted it what its spec requests.
            status = _replace(status, container_statuses=(), init_container_statuses=())
            status = _replace(status, resources=None, allocated_resources={})
        if spec.volumes:
            read = tuple(volume for volume in spec.volumes if volume != Volume(volume.name))
            spec = spec if len(read) == len(spec.volumes) else _replace(spec, volumes=read)
        meta = _replace(meta, annotations=self.annotations(annotations))
        return _replace(pod, metadata=meta, spec=spec, status=status)


@cache
def kept_of(reads: Reads) -> Kept:
    """Return the same object for the same declarations, so that pods are comparable."""
    return Kept(reads)
