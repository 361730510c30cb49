"""A view of pods that shows how they run: their phase, and the runs of their containers.

Scheduling has no use for this, so ordinary pods do without it. It is watched only for plugins that
learn from the outcomes of pods.
"""

from longshore.api.meta import ApiObject, ApiStruct, ObjectMeta
from longshore.api.pod import Pod


class RunningState(ApiStruct):
    started_at: str | None = None


class TerminatedState(ApiStruct):
    exit_code: int = 0
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(ApiStruct):
    """At most one of the two is set; a container without either waits."""

    running: RunningState | None = None
    terminated: TerminatedState | None = None


class ContainerRun(ApiStruct):
    """The current run of a container, and the one before it."""

    name: str = ""
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodRunSpec(ApiStruct):
    node_name: str = ""


class PodRunStatus(ApiStruct):
    phase: str = ""
    container_statuses: tuple[ContainerRun, ...] = ()


class PodRun(ApiObject):
    spec: PodRunSpec = PodRunSpec()
    status: PodRunStatus = PodRunStatus()

    @classmethod
    def of(cls, pod: Pod) -> "PodRun":
        """Return the view of an ordinary pod, which shows only the phase, and no runs of containers."""
        meta = pod.metadata
        return cls(
            metadata=ObjectMeta(
                name=meta.name,
                namespace=meta.namespace,
                uid=meta.uid,
                resource_version=meta.resource_version,
                labels=meta.labels,
                creation_timestamp=meta.creation_timestamp,
            ),
            spec=PodRunSpec(node_name=pod.spec.node_name),
            status=PodRunStatus(phase=pod.status.phase),
        )
