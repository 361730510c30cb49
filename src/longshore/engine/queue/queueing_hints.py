"""Whether an event may help a rejected pod: the hints of the plugins that rejected it decide.

Which hints have a say depends on the rejecting plugins and on the kind of the event alone, so it is worked
out once for each such pair; most events turn out to concern nobody before any pod is looked at.
"""

import enum
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from longshore.api import Pod
from longshore.engine.plugin_failure import PLUGIN_ERRORS
from longshore.framework import Action, ClusterEvent, Resource, WakeOn
from longshore.framework.cluster_events import Hint

# Resource and action of an event, as plain values: these hash faster than enums.
Kind = tuple[str, int]


class Verdict(enum.Enum):
    """What an event means for a rejected pod."""

    STAY = enum.auto()
    # Worth another try, once its backoff is over.
    AFTER_BACKOFF = enum.auto()
    # A plugin that said Pending has got what it waited for.
    AT_ONCE = enum.auto()


class Say(NamedTuple):
    """The hints that decide about events of a kind: of the plugins that said Pending, and of the rest."""

    pending: tuple[Hint, ...]
    others: tuple[Hint, ...]
    # Whether all of them say the same about pods that are alike.
    by_shape: bool = True

    def verdict(self, pod: Pod, event: ClusterEvent) -> Verdict:
        for hint in self.pending:
            if _helps(hint, pod, event):
                return Verdict.AT_ONCE
        for hint in self.others:
            if _helps(hint, pod, event):
                return Verdict.AFTER_BACKOFF
        return Verdict.STAY


def kind_of(event: ClusterEvent) -> Kind:
    return event.resource.value, event.action.value


def heard(wakes: Sequence[WakeOn] | None) -> tuple[WakeOn, ...]:
    """What a plugin really hears of, given what it names."""
    if wakes is None:
        return _ANYTHING
    if not wakes:
        return _OWN_CHANGES
    named = Action(0)
    for wake in wakes:
        if wake.resource is Resource.NODE:
            named |= wake.actions
    # kube-scheduler tells plugins that wait for new nodes of changed taints too, whatever their hints say.
    return (*wakes, _TAINTS) if Action.ADD in named and Action.UPDATE_NODE_TAINT not in named else (*wakes,)


def hints(wakes: Iterable[WakeOn], event: ClusterEvent) -> tuple[Hint, ...]:
    """The hints to ask about such an event; none if the plugin does not wake on it."""
    return tuple(wake.hint or _always for wake in wakes if wake.matches(event))


def say_by_shape(wakes: Iterable[WakeOn], event: ClusterEvent) -> bool:
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
        # A new status does not count, lest our own words about the pod have it tried again.
        and (
            new.spec != old.spec
            or new.metadata.labels != old.metadata.labels
            or new.metadata.annotations != old.metadata.annotations
        )
    )


WILDCARD_SAY = Say((), (_meant,), by_shape=False)
NOTHING_TO_SAY = Say((), ())

_ANYTHING = (WakeOn(Resource.WILDCARD, Action.ALL),)
_OWN_CHANGES = (WakeOn(Resource.UNSCHEDULED_POD, Action.UPDATE, _own_change),)
_TAINTS = WakeOn(Resource.NODE, Action.UPDATE_NODE_TAINT)
