"""Requests to HTTP extenders and their answers, in the JSON of kube-scheduler's extender/v1.

Pods and nodes are sent with their metadata and the fields that scheduling reads. An extender that needs other
fields has to look them up. In answers, the case of field names does not matter, as in Go.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from longshore.api import Node, Pod
from longshore.framework.points import Candidate

T = TypeVar("T")


class NoAnswer(Exception):
    """The extender failed, or its answer is invalid. The message is the extender's, if it sent one."""


class _Named(msgspec.Struct, frozen=True):
    name: str = ""


class _Item(msgspec.Struct, frozen=True):
    metadata: _Named = _Named()


class _NodeList(msgspec.Struct, frozen=True):
    items: tuple[_Item, ...] | None = None


class Filtered(msgspec.Struct, frozen=True):
    """The nodes that are left, and why others are not."""

    nodes: _NodeList | None = None
    nodenames: tuple[str, ...] | None = None
    failednodes: Mapping[str, str] | None = None
    failedandunresolvablenodes: Mapping[str, str] | None = None
    error: str | None = None

    def left(self, *, by_name: bool) -> Sequence[str]:
        if by_name and self.nodenames is not None:
            return self.nodenames
        return [item.metadata.name for item in (self.nodes and self.nodes.items) or ()]


class HostPriority(msgspec.Struct, frozen=True):
    host: str = ""
    score: int = 0


class _MetaPod(msgspec.Struct, frozen=True):
    uid: str = ""


class MetaVictims(msgspec.Struct, frozen=True):
    pods: tuple[_MetaPod, ...] | None = None
    numpdbviolations: int = 0


class _Preempted(msgspec.Struct, frozen=True):
    nodenametometavictims: Mapping[str, MetaVictims | None] | None = None


class _Bound(msgspec.Struct, frozen=True):
    error: str | None = None


def about_nodes(pod: Pod, nodes: Sequence[Node], *, by_name: bool) -> bytes:
    """Return the request body of Filter and Prioritize."""
    return msgspec.json.encode(
        {
            "Pod": pod,
            "Nodes": None if by_name else {"metadata": {}, "items": nodes},
            "NodeNames": [node.metadata.name for node in nodes] if by_name else None,
        }
    )


def about_victims(pod: Pod, candidates: Sequence[Candidate], *, by_name: bool) -> bytes:
    def victims(candidate: Candidate) -> dict[str, Any]:
        pods = [victim.pod for victim in candidate.victims]
        named = [{"UID": pod.metadata.uid} for pod in pods]
        return {"Pods": named if by_name else pods, "NumPDBViolations": candidate.cost[0]}

    by_node = {candidate.node: victims(candidate) for candidate in candidates}
    return msgspec.json.encode(
        {
            "Pod": pod,
            "NodeNameToVictims": None if by_name else by_node,
            "NodeNameToMetaVictims": by_node if by_name else None,
        }
    )


def about_binding(pod: Pod, node: str) -> bytes:
    meta = pod.metadata
    return msgspec.json.encode(
        {"PodName": meta.name, "PodNamespace": meta.namespace, "PodUID": meta.uid, "Node": node}
    )


def filtered(body: bytes) -> Filtered:
    answer = _read(body, Filtered, depth=1)
    if answer.error:
        raise NoAnswer(answer.error)
    return answer


def priorities(body: bytes) -> Sequence[HostPriority]:
    return _read(body, tuple[HostPriority, ...] | None, depth=2) or ()  # type: ignore[arg-type]


def victims_by_node(body: bytes) -> Mapping[str, MetaVictims | None]:
    return _read(body, _Preempted, depth=5).nodenametometavictims or {}


def require_bound(body: bytes) -> None:
    if error := _read(body, _Bound, depth=1).error:
        raise NoAnswer(error)


def _read(body: bytes, kind: type[T], *, depth: int) -> T:
    try:
        return msgspec.convert(_folded(msgspec.json.decode(body), depth), kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise NoAnswer(f"the answer is not valid for an extender: {error}") from error


def _folded(value: Any, depth: int) -> Any:
    """Return the value with the keys of objects in lower case, down to the depth of our fields."""
    if depth and isinstance(value, dict):
        return {key.lower(): _folded(inner, depth - 1) for key, inner in value.items()}
    if depth and isinstance(value, list):
        return [_folded(inner, depth - 1) for inner in value]
    return value
