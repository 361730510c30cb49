"""DefaultBinder: binds the pod to its node through the API server."""

from collections.abc import Generator

from longshore.cluster import PodInfo
from longshore.framework import CycleState, Status
from longshore.framework.effects import Ask, Bind, Conflict, Failed, Gone, Outcome

NAME = "DefaultBinder"


class DefaultBinder:
    name = NAME

    def bind(self, state: CycleState, pod: PodInfo, node: str) -> Generator[Ask, Outcome, Status | None]:
        outcome = yield Bind.of(pod.pod, node)
        return Status.error(outcome.message) if isinstance(outcome, Conflict | Gone | Failed) else None
