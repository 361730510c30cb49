"""The extension points: the whole contract in one file, without behaviour.

A plugin is an object with a `name` that has the methods of one or more points. It answers for all nodes at
once: `cluster` holds every quantity as an array with one element for each row, and the answers are such
arrays too.

    class KeepsACoreFree:
        name = "KeepsACoreFree"

        def filter(self, pod, cluster):
            crowded = cluster.allocatable[CPU] - cluster.requested[CPU] < 1000
            return Verdict(~crowded, {"node(s) had less than a core free": crowded})

Rules for every point: look at `pod` and `cluster` alone, so that a decision can be repeated; change neither
of them; keep nothing from one call to the next that the answer depends on. Rows without a node
(`cluster.known` is False there) may be answered in any way: the engine leaves them out. A plugin that raises,
or whose answer has the wrong shape, fails the attempt of this one pod, and the failure carries the plugin's
name.
"""

from collections.abc import Mapping
from typing import Protocol

import msgspec

from longshore.cluster import ClusterState, PodInfo
from longshore.cluster.state import Bools, Ints

MAX_SCORE = 100


class Verdict(msgspec.Struct, frozen=True):
    """A filter's answer: where the pod may go, and for the other rows why not.

    `reasons` maps a text that users see to the rows that it holds for; a row may have several. It is counted
    only for rows that this filter rejects and no earlier filter has rejected.
    """

    feasible: Bools
    reasons: Mapping[str, Bools]


class Plugin(Protocol):
    @property
    def name(self) -> str:
        """What users know it by: in messages and in the configuration."""
        ...


class Filter(Plugin, Protocol):
    """Rules out nodes on which the pod cannot run.

    Called once for each attempt to schedule a pod, in the order of the profile, as long as some node is left.
    """

    def filter(self, pod: PodInfo, cluster: ClusterState) -> Verdict:
        """Answer for all rows, also those that an earlier filter has ruled out.

        Say only whether the node would do as the cluster is now; which of the good nodes is best is for
        Score.
        """
        ...


class Score(Plugin, Protocol):
    """Ranks the nodes that passed all filters.

    Called once for each attempt in which more than one node passed; with a single one there is nothing to
    rank.
    """

    def score(self, pod: PodInfo, cluster: ClusterState) -> Ints:
        """A whole number from 0 to MAX_SCORE for each row, the higher the better.

        The engine multiplies it by the weight that the profile gives the plugin and adds up all plugins. Only
        rows that passed the filters have to be in the range.
        """
        ...
