"""Reward: prefers nodes on which pods of the same type have done well, and avoids those on which they failed.

It does not need to know why some pods fail on some nodes. The outcome of each pod is a reward for its type on
its node (see `outcomes`), and the score is the reward that a pod of the type can expect there.
"""

from collections.abc import Mapping

from longshore.agents.reward.arguments import NAME, RewardArgs, reward_arguments
from longshore.agents.reward.columns import tens
from longshore.agents.reward.learning import RewardController
from longshore.agents.reward.outcomes import pod_type
from longshore.cluster import Nodes, PodInfo
from longshore.cluster.arrays import Ints
from longshore.errors import UserError
from longshore.framework import CycleState, Handle, Scope


class Reward:
    name = NAME
    verb = "rl-priority"
    # The learned values may have changed since the last pod, and they drift with time.
    scope = Scope.CLUSTER

    def __init__(self, args: object = None, *, handle: Handle) -> None:
        self._controller = _shared(reward_arguments(args), handle)

    @classmethod
    def environment(cls, environ: Mapping[str, str]) -> dict[str, object]:
        return {}

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Ints:
        meta = pod.pod.metadata
        expected = self._controller.expected(pod_type(meta.labels, meta.name), nodes.cluster)
        scores: Ints = tens(nodes.take(expected))
        return scores


def _shared(args: RewardArgs, handle: Handle) -> RewardController:
    """Return the one controller of all profiles: with two, everything would count twice."""
    for controller in handle.controllers:
        if isinstance(controller, RewardController):
            if controller.args != args:
                raise UserError(f"arguments of {NAME}: they must be the same in all profiles")
            return controller
    controller = RewardController(args, handle)
    handle.control(controller)
    return controller
