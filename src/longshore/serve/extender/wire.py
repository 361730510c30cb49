"""What a kube-scheduler says to an extender and what it is answered: extender/v1 from the extender's side.

The case of our own keys does not matter in what comes in, as it does not in Go, and what goes out has Go's.
Of pods and nodes no more is decoded than scheduling reads; nodes that pass go back byte for byte.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from longshore.api import Node, Pod, Volume

T = TypeVar("T")

NO_POD = "there is no Pod in it"
NO_NODES = "there are neither Nodes nor NodeNames in it"

_MESSAGE = dict[str, msgspec.Raw]
# As they were spelt once, beside how they are spelt now.
_VICTIMS = ("nodenametovictims", "nodetovictims")
_META_VICTIMS = ("nodenametometavictims", "nodetometavictims")
_NULL = b"null"
# Of reasons.
NOTHING = msgspec.Raw(b"{}")


class Malformed(Exception):
    """What was sent is not what a kube-scheduler says; told in one line."""


class Asked(msgspec.Struct, frozen=True):
    """About which pod, and about which nodes: by name, or as they are."""

    pod: bytes
    # The JSON of a list of names, as it came; None if the nodes themselves were sent.
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


def asked(body: bytes) -> Asked:
    """What Filter and Prioritize are asked. Raises Malformed, as all that reads here."""
    said = _folded(body)
    pod = said.get("pod", _NULL)
    if pod == _NULL:
        raise Malformed(NO_POD)
    nodes, names = said.get("nodes", _NULL), said.get("nodenames", _NULL)
    if nodes != _NULL:
        items = _folded(nodes).get("items", _NULL)
        return Asked(pod, None, () if items == _NULL else [bytes(item) for item in _read(_items, items)])
    if names == _NULL:
        raise Malformed(NO_NODES)
    return Asked(pod, names)


def read_names(names: bytes) -> Sequence[str]:
    return _read(_names, names)


def read_pod(pod: bytes) -> Pod:
    found = _read_leniently(_pod, pod, Pod)
    # The token that each pod has under a name of its own would make every pod unlike all others.
    volumes = tuple(each for each in found.spec.volumes if each != Volume(name=each.name))
    if len(volumes) == len(found.spec.volumes):
        return found
    return msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, volumes=volumes))


def read_node(node: bytes) -> Node:
    found = _read_leniently(_node, node, Node)
    if not found.metadata.name:
        raise Malformed("one of the Nodes has no name")
    return found


def read_victims(body: bytes) -> Mapping[str, Victims]:
    """By node, the pods that would have to go, by their UIDs; however they were named."""
    said = _folded(body)
    for key in (*_META_VICTIMS, *_VICTIMS):
        if said.get(key, _NULL) != _NULL:
            by_node = {node: bytes(raw) for node, raw in _read(_message, said[key]).items()}
            found = {node: _victims_of(raw) for node, raw in by_node.items() if raw != _NULL}
            return {node: victims for node, victims in found.items() if victims.pods}
    raise Malformed("there are neither NodeNameToVictims nor NodeNameToMetaVictims in it")


def _victims_of(raw: bytes) -> Victims:
    said = _folded(raw)
    named = said.get("pods", _NULL)
    pods = () if named == _NULL else _read(_items, named)
    violations = _read(msgspec.json.Decoder(int | None), said.get("numpdbviolations", _NULL)) or 0
    return Victims(tuple({"UID": _uid(bytes(pod))} for pod in pods), violations)


def _uid(raw: bytes) -> str:
    """Of a pod that was sent whole, or by its UID alone."""
    said = _folded(raw)
    place = said.get("metadata", _NULL)
    uid = (_folded(place) if place != _NULL else said).get("uid", b'""')
    found = _read(msgspec.json.Decoder(str), uid)
    if not found:
        raise Malformed("one of the victims has no UID")
    return found


def filtered(
    *,
    names: bytes | None = None,
    nodes: Sequence[bytes] | None = None,
    failed: msgspec.Raw = NOTHING,
    unresolvable: msgspec.Raw = NOTHING,
    error: str = "",
) -> bytes:
    """What is left of the nodes, in the way they were given, and why the others are not."""
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
    return msgspec.json.encode(name) + b":"


def reasons(groups: Iterable[tuple[str, Iterable[bytes]]]) -> msgspec.Raw:
    """One for each node; nodes come by their keys."""
    said = []
    for words, keys in groups:
        value = msgspec.json.encode(words)
        said.append((value + b",").join(keys) + value)
    return msgspec.Raw(b"{%b}" % b",".join(said))


def priorities_of(host: str, number: int) -> Sequence[bytes]:
    """Elements of what Prioritize answers: the node with each of so many scores, from 0 on."""
    head = b'{"Host":%b,"Score":' % msgspec.json.encode(host)
    return [b"%b%d}" % (head, score) for score in range(number)]


def priorities(elements: Iterable[bytes]) -> bytes:
    return b"[%b]" % b",".join(elements)


def preempted(victims: Mapping[str, Victims]) -> bytes:
    return msgspec.json.encode({"NodeNameToMetaVictims": victims})


def written_names(names: Sequence[str]) -> bytes:
    return msgspec.json.encode(names)


def refused(message: str) -> bytes:
    """Of a bind, and of whatever went wrong."""
    return msgspec.json.encode({"Error": message})


def _folded(body: bytes) -> dict[str, bytes]:
    """With keys in lower case; the last of several counts."""
    return {key.lower(): bytes(value) for key, value in _read(_message, body).items()}


def _read(decoder: "msgspec.json.Decoder[T]", body: bytes) -> T:
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(" ".join(str(error).split())) from error


def _read_leniently(decoder: "msgspec.json.Decoder[T]", body: bytes, kind: type[T]) -> T:
    """In Go a null is as good as nothing, whatever it stands for."""
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
