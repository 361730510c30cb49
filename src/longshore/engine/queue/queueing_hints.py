"""Whether an event may help a rejected pod: the hints of the plugins that rejected it decide.

Which hints decide depends only on those plugins and on the kind of the event, so it is worked out once for
each such pair. Most events turn out to help no pod before any pod is looked at.
"""

import enum
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from longshore.api import Pod
from longshore.engine.plugin_failure import PLUGIN_ERRORS
from longshore.framework import Action, ClusterEvent, Resource, WakeOn
from longshore.framework.cluster_events import Hint

# Resource and action of an event, as plain values: these hash faster than enums.
EventKind = tuple[str, int]


class QueueingStrategy(enum.Enum):
    """What an event means for a rejected pod."""

    SKIP = enum.auto()
    # Worth another try once its backoff is over.
    AFTER_BACKOFF = enum.auto()
    # A plugin that said Pending got what it waited for.
    IMMEDIATELY = enum.auto()


class DecidingHints(NamedTuple):
    """The hints that decide about events of a kind: of the plugins that said Pending, and of the others."""

    pending: tuple[Hint, ...]
    others: tuple[Hint, ...]
    # Whether each of them gives the same answer for all pods of a shape.
    by_shape: bool = True

    def strategy(self, pod: Pod, event: ClusterEvent) -> QueueingStrategy:
        for hint in self.pending:
            if _helps(hint, pod, event):
                return QueueingStrategy.IMMEDIATELY
        for hint in self.others:
            if _helps(hint, pod, event):
                return QueueingStrategy.AFTER_BACKOFF
        return QueueingStrategy.SKIP


def kind_of(event: ClusterEvent) -> EventKind:
    return event.resource.value, event.action.value


def effective_wakes(wakes: Sequence[WakeOn] | None) -> tuple[WakeOn, ...]:
    """Return what wakes the pods that a plugin rejected, given what it declares in `wakes_on`."""
    if wakes is None:
        return _ANYTHING
    if not wakes:
        return _OWN_CHANGES
    node_actions = Action(0)
    for wake in wakes:
        if wake.resource is Resource.NODE:
            node_actions |= wake.actions
    # kube-scheduler also wakes on changed taints if a plugin waits for new nodes, whatever its hints say.
    if Action.ADD in node_actions and Action.UPDATE_NODE_TAINT not in node_actions:
        return (*wakes, _TAINTS)
    return (*wakes,)


def hints(wakes: Iterable[WakeOn], event: ClusterEvent) -> tuple[Hint, ...]:
    """Return the hints to call for such an event; none if the plugin does not wake on it."""
    return tuple(wake.hint or _always for wake in wakes if wake.matches(event))


def hints_by_shape(wakes: Iterable[WakeOn], event: ClusterEvent) -> bool:
    return all(wake.hint is None or wake.by_shape for wake in wakes if wake.matches(event))


def _helps(hint: Hint, pod: Pod, event: ClusterEvent) -> bool:
    try:
        return bool(hint(pod, event.old, event.new))
    except PLUGIN_ERRORS:  # One try too many is better than a pod that is never tried again.
        return True


def _always(_pod: Pod, _old: Any, _new: Any) -> bool:
    return True


def _meant(pod: Pod, _old: Any, new: Any) -> bool:
    """Whether a wildcard event is for this pod: without an object, it is for all."""
    return new is None or (isinstance(new, Pod) and new.metadata.uid == pod.metadata.uid)


def _own_change(pod: Pod, old: Any, new: Any) -> bool:
    return (
        isinstance(new, Pod)
        and isinstance(old, Pod)
        and new.metadata.uid == pod.metadata.uid
        # The status does not count: we write it ourselves, and the pod would be tried over and over.
        and (
            new.spec != old.spec
            or new.metadata.labels != old.metadata.labels
            or new.metadata.annotations != old.metadata.annotations
        )
    )


WILDCARD_HINTS = DecidingHints((), (_meant,), by_shape=False)
NO_HINTS = DecidingHints((), ())

_ANYTHING = (WakeOn(Resource.WILDCARD, Action.ALL),)
_OWN_CHANGES = (WakeOn(Resource.UNSCHEDULED_POD, Action.UPDATE, _own_change),)
_TAINTS = WakeOn(Resource.NODE, Action.UPDATE_NODE_TAINT)
