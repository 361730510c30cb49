"""A recorded cluster: changes that were seen in a real cluster, played back at their times."""

from collections.abc import Iterable
from functools import partial
from typing import Any

import msgspec

from longshore.api import Change, Pod
from longshore.sim.agenda import Agenda
from longshore.sim.cluster import SimulatedCluster

_replace = msgspec.structs.replace

# A change as it was seen in a real cluster, and when.
Recorded = tuple[float, Change[Any]]


class RecordedCluster(SimulatedCluster):
    """`Cluster` in which everything happens again, except where the pods of one scheduler go.

    Such a pod appears as it was recorded first; its later versions are on the node that it is bound to here,
    so the mere consequences of a bind may be left in or out. Operations are performed at once. The changes of
    one time are all reported before any decision is made: a recorder notes for each change the time
    of the next decision.
    """

    def __init__(self, agenda: Agenda, recorded: Iterable[Recorded], *, scheduler_name: str) -> None:
        super().__init__(agenda, bind_latency=0.0, start_time=None)
        self._scheduler_name = scheduler_name
        self.play(recorded)

    def play(self, recorded: Iterable[Recorded]) -> None:
        """Let these changes happen again, each at its time."""
        for time, change in recorded:
            self._agenda.at(time, partial(self._happen_again, change))

    def _happen_again(self, change: Change[Any]) -> None:
        new = change.new
        if new is None:
            self.delete(change.object)
            return
        if isinstance(new, Pod) and new.spec.scheduler_name == self._scheduler_name:
            known = self.pods.get(new.key)
            if known is not None and known.metadata.uid == new.metadata.uid:
                new = _replace(new, spec=_replace(new.spec, node_name=known.spec.node_name))
        self.put(new)
