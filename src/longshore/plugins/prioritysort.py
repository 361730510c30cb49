"""PrioritySort: orders the queue by priority, highest first, then by waiting time, longest first."""

from longshore.api import Pod

NAME = "PrioritySort"


class PrioritySort:
    name = NAME

    def sort_key(self, pod: Pod, since: float) -> tuple[int, float]:
        return -pod.spec.priority, since
