"""Foo: accepts all nodes and gives all the same score. Copy it to start an agent of your own.

It changes no decision, so it shows whether agents are called at all.
"""

from collections.abc import Iterable, Mapping

import msgspec

from longshore.cluster import Nodes, PodInfo
from longshore.config.plugin_arguments import read_plugin_arguments
from longshore.framework import CycleState, Handle, Rejection, Scope

_SCORE = 10


class FooArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Foo has no arguments."""


class Foo:
    name = "Foo"
    verb = "foo"
    scope = Scope.NODE

    def __init__(self, args: object = None, *, handle: Handle) -> None:
        read_plugin_arguments(FooArgs, args, plugin=self.name)

    @classmethod
    def environment(cls, environ: Mapping[str, str]) -> dict[str, object]:
        return {}

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Iterable[Rejection]:
        return ()

    def score(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> int:
        return _SCORE
