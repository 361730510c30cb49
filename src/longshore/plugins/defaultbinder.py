"""DefaultBinder: binds the pod to its node through the API server."""

from longshore.cluster import PodInfo
from longshore.framework import CycleState
from longshore.framework.effects import Bind

NAME = "DefaultBinder"


class DefaultBinder:
    name = NAME

    def bind(self, state: CycleState, pod: PodInfo, node: str) -> Bind:
        return Bind.of(pod.pod, node)
