"""What a driver tells the engine: changes of pods and nodes, and how requested effects ended."""

import msgspec

from longshore.api import Change, Node, Pod


class Succeeded(msgspec.Struct, frozen=True, gc=False):
    """The write has landed."""


class Conflict(msgspec.Struct, frozen=True, gc=False):
    """The API server knows better: someone else has bound the pod, or it is ending. The watch will tell."""

    message: str = ""


class Gone(msgspec.Struct, frozen=True, gc=False):
    """The pod is no more."""

    message: str = ""


class Failed(msgspec.Struct, frozen=True, gc=False):
    """The write has not landed, as far as can be told. It is worth another try after a while."""

    message: str = ""


Outcome = Succeeded | Conflict | Gone | Failed


class Done(msgspec.Struct, frozen=True, gc=False):
    """How the request of this number ended. An unknown number, or one told before, is passed over."""

    id: int
    outcome: Outcome


Event = Change[Pod] | Change[Node] | Done
