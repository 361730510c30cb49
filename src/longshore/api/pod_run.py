"""A second view of pods, which shows how they run: their phase, and the runs of their containers.

Scheduling does not need this, so `Pod` does not have it. Agents that learn from the outcomes of pods watch it
separately.
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
    """At most one of the two is set. If neither is, the container is waiting."""

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
        """Return what a `Pod` shows of its run, which is the phase. The runs of its containers are empty."""
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
