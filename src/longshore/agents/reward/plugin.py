"""Reward: pods go where pods of their type have done well, and stay away from where they have failed.

Pods are taken as they come: nobody knows why some of them fail on some nodes. What becomes of each is a
reward for its type on its node (see `outcomes`), and the score is what a pod of the type can expect there.
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
    # What was learnt may have changed since the last pod, and drifts with time.
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
    """What is learnt is the same for all profiles: two that learn would count everything twice."""
    for controller in handle.controllers:
        if isinstance(controller, RewardController):
            if controller.args != args:
                raise UserError(f"arguments of {NAME}: they need to be the same in all profiles")
            return controller
    controller = RewardController(args, handle)
    handle.control(controller)
    return controller
