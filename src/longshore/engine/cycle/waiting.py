"""What a cycle waits for, besides effects; and pods that have their node and wait for a permission."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from longshore.api import Pod, format_duration
from longshore.framework import Code, Status
from longshore.framework.effects import CallWebhook


class WaitOnPermit(msgspec.Struct, frozen=True):
    """Wait until all of these plugins allow it, each for at most its seconds. The engine's own affair."""

    seconds: Mapping[str, float]


class BindingBegins(msgspec.Struct, frozen=True):
    """The pod will be bound unless something breaks: no event can change its mind. Not waited for."""


class MayGiveWay(msgspec.Struct, frozen=True):
    """From now on the cycle may be ended for the good of another pod: then `instead` goes on in its place.

    With None it may not any more. Not waited for.
    """

    instead: Callable[[], Any] | None


class Consult(msgspec.Struct, frozen=True):
    """Ask these, answered in the same way. The decision about the pod depends on them.

    So until the answers are there no other pod is tried, and the cluster stays as it was looked at.
    """

    calls: tuple[CallWebhook, ...]


class BindThrough(msgspec.Struct, frozen=True):
    """Have an extender bind the pod to the node."""

    node: str
    call: CallWebhook


@dataclass(slots=True)
class WaitingPod:
    """A held pod: which plugins still hold it, and until when."""

    pod: Pod
    node: str
    since: float
    # Plugin to the time when its patience ends.
    until: dict[str, float]

    @property
    def deadline(self) -> float:
        return min(self.until.values())

    def allow(self, plugin: str) -> bool:
        """Whether no plugin holds it any more."""
        self.until.pop(plugin, None)
        return not self.until

    def expired(self, now: float) -> Status | None:
        """The rejection by the plugin whose time is over first, if one is."""
        plugin = min(self.until, key=self.until.__getitem__)
        if self.until[plugin] > now:
            return None
        waited = self.until[plugin] - self.since
        message = f"rejected due to timeout after waiting {format_duration(waited)} at plugin {plugin}"
        return Status(Code.UNSCHEDULABLE, (message,), plugin)
