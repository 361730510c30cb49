"""The JSON of extender/v1, from the extender's side: requests of kube-scheduler and the answers to them.

Keys in requests match in any case, as in Go, and answers use Go's keys. Only the fields that scheduling reads
are decoded; nodes that pass are returned byte for byte.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from longshore.api import Node, Pod, Volume

T = TypeVar("T")

NO_POD = "Pod is missing"
NO_NODES = "Nodes or NodeNames is missing"

_MESSAGE = dict[str, msgspec.Raw]
# Each key as spelled now, and as it was spelled earlier.
_VICTIMS = ("nodenametovictims", "nodetovictims")
_META_VICTIMS = ("nodenametometavictims", "nodetometavictims")
_NULL = b"null"
# No reasons.
NOTHING = msgspec.Raw(b"{}")


class Malformed(Exception):
    """A request that kube-scheduler would not send. The text is one line."""


class ExtenderArgs(msgspec.Struct, frozen=True):
    """The pod and the nodes of a request. Nodes are given by name or as whole objects."""

    pod: bytes
    # The JSON of the list of names; None if whole nodes were sent.
    names: bytes | None
    nodes: Sequence[bytes] = ()


class Victims(msgspec.Struct, frozen=True, rename={"pods": "Pods", "violations": "NumPDBViolations"}):
    pods: tuple[dict[str, str], ...]
    violations: int = 0


_message = msgspec.json.Decoder(_MESSAGE)
_names = msgspec.json.Decoder(tuple[str, ...])
_items = msgspec.json.Decoder(tuple[msgspec.Raw, ...])
_pod = msgspec.json.Decoder(Pod)
_node = msgspec.json.Decoder(Node)


def read_args(body: bytes) -> ExtenderArgs:
    """Return the body of a Filter or Prioritize request. Raises Malformed, as all readers here do."""
    args = _folded(body)
    pod = args.get("pod", _NULL)
    if pod == _NULL:
        raise Malformed(NO_POD)
    nodes, names = args.get("nodes", _NULL), args.get("nodenames", _NULL)
    if nodes != _NULL:
        items = _folded(nodes).get("items", _NULL)
        return ExtenderArgs(
            pod, None, () if items == _NULL else [bytes(item) for item in _read(_items, items)]
        )
    if names == _NULL:
        raise Malformed(NO_NODES)
    return ExtenderArgs(pod, names)


def read_names(names: bytes) -> Sequence[str]:
    return _read(_names, names)


def read_pod(pod: bytes) -> Pod:
    found = _read_leniently(_pod, pod, Pod)
    # Each pod's token volume has a name of its own, which would give each pod a shape of its own.
    volumes = tuple(each for each in found.spec.volumes if each != Volume(name=each.name))
    if len(volumes) == len(found.spec.volumes):
        return found
    return msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, volumes=volumes))


def read_node(node: bytes) -> Node:
    found = _read_leniently(_node, node, Node)
    if not found.metadata.name:
        raise Malformed("a node in Nodes has no name")
    return found


def read_victims(body: bytes) -> Mapping[str, Victims]:
    """Return the victims on each node by UID, whether the request contains UIDs or whole pods."""
    request = _folded(body)
    for key in (*_META_VICTIMS, *_VICTIMS):
        if request.get(key, _NULL) != _NULL:
            by_node = {node: bytes(raw) for node, raw in _read(_message, request[key]).items()}
            found = {node: _victims_of(raw) for node, raw in by_node.items() if raw != _NULL}
            return {node: victims for node, victims in found.items() if victims.pods}
    raise Malformed("NodeNameToVictims or NodeNameToMetaVictims is missing")


def _victims_of(raw: bytes) -> Victims:
    fields = _folded(raw)
    named = fields.get("pods", _NULL)
    pods = () if named == _NULL else _read(_items, named)
    violations = _read(msgspec.json.Decoder(int | None), fields.get("numpdbviolations", _NULL)) or 0
    return Victims(tuple({"UID": _uid(bytes(pod))} for pod in pods), violations)


def _uid(raw: bytes) -> str:
    """Return the UID of a victim that was sent as a whole pod or as a UID."""
    fields = _folded(raw)
    metadata = fields.get("metadata", _NULL)
    uid = (_folded(metadata) if metadata != _NULL else fields).get("uid", b'""')
    found = _read(msgspec.json.Decoder(str), uid)
    if not found:
        raise Malformed("a victim has no UID")
    return found


def filtered(
    *,
    names: bytes | None = None,
    nodes: Sequence[bytes] | None = None,
    failed: msgspec.Raw = NOTHING,
    unresolvable: msgspec.Raw = NOTHING,
    error: str = "",
) -> bytes:
    """Return the answer to Filter: the nodes that pass, in the request's form, and the others' reasons."""
    items = None if nodes is None else {"metadata": {}, "items": [msgspec.Raw(node) for node in nodes]}
    return msgspec.json.encode(
        {
            "Nodes": items,
            "NodeNames": None if names is None else msgspec.Raw(names),
            "FailedNodes": failed,
            "FailedAndUnresolvableNodes": unresolvable,
            "Error": error,
        }
    )


def key(name: str) -> bytes:
    """Return the name as a key of a JSON object."""
    return msgspec.json.encode(name) + b":"


def reasons(groups: Iterable[tuple[str, Iterable[bytes]]]) -> msgspec.Raw:
    """Return the JSON object that maps the keys of nodes to their reasons."""
    pairs = []
    for words, keys in groups:
        value = msgspec.json.encode(words)
        pairs.append((value + b",").join(keys) + value)
    return msgspec.Raw(b"{%b}" % b",".join(pairs))


def priorities_of(host: str, number: int) -> Sequence[bytes]:
    """Return elements of the answer to Prioritize: the node with each score below `number`."""
    head = b'{"Host":%b,"Score":' % msgspec.json.encode(host)
    return [b"%b%d}" % (head, score) for score in range(number)]


def priorities(elements: Iterable[bytes]) -> bytes:
    """Return the answer to Prioritize."""
    return b"[%b]" % b",".join(elements)


def preempted(victims: Mapping[str, Victims]) -> bytes:
    """Return the answer to a preemption request."""
    return msgspec.json.encode({"NodeNameToMetaVictims": victims})


def written_names(names: Sequence[str]) -> bytes:
    return msgspec.json.encode(names)


def refused(message: str) -> bytes:
    """Return the answer to a bind, or to a request that failed."""
    return msgspec.json.encode({"Error": message})


def _folded(body: bytes) -> dict[str, bytes]:
    """Return the object with its keys in lower case. The last of equal keys counts."""
    return {key.lower(): bytes(value) for key, value in _read(_message, body).items()}


def _read(decoder: "msgspec.json.Decoder[T]", body: bytes) -> T:
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(" ".join(str(error).split())) from error


def _read_leniently(decoder: "msgspec.json.Decoder[T]", body: bytes, kind: type[T]) -> T:
    """Decode a value in which any field may be null, which Go reads as absent."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError:
        try:
            return msgspec.convert(_without_nulls(_read(msgspec.json.Decoder(), body)), kind)
        except (msgspec.ValidationError, RecursionError) as error:
            raise Malformed(f"{kind.__name__}: {error}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"{kind.__name__}: {error}") from error


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value if inner is not None]
    return value
