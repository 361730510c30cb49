"""The order of the queue: higher priority first, and whoever waits longest among equals."""

from longshore.api import Pod

NAME = "PrioritySort"


class PrioritySort:
    name = NAME

    def sort_key(self, pod: Pod, since: float) -> tuple[int, float]:
        return -pod.spec.priority, since
