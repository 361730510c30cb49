"""A cluster in a file: each line is an object in JSON with its kind, and only what scheduling reads of it.

What `kubectl get … -o json` prints can be read as well.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from longshore import api
from longshore.api.meta import ApiObject
from longshore.ask.snapshot import Snapshot
from longshore.errors import UserError

_KINDS: Mapping[str, type[ApiObject]] = {
    kind.__name__: kind
    for kind in (
        api.Pod,
        api.Node,
        api.Namespace,
        api.Service,
        api.ReplicationController,
        api.ReplicaSet,
        api.StatefulSet,
        api.PodDisruptionBudget,
        api.PersistentVolume,
        api.PersistentVolumeClaim,
        api.StorageClass,
        api.CSINode,
        api.CSIDriver,
        api.CSIStorageCapacity,
        api.VolumeAttachment,
        api.ScheduleTrigger,
        api.SchedulePlan,
    )
}


def save(snapshot: Snapshot, file: str) -> None:
    """Raises UserError."""
    try:
        with Path(file).open("wb") as lines:
            for thing in snapshot.objects:
                kind = next(name for name, kind in _KINDS.items() if isinstance(thing, kind))
                lines.write(msgspec.json.encode({"kind": kind, **msgspec.to_builtins(thing)}) + b"\n")
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror}") from error


def read(file: str) -> Snapshot:
    """Objects of other kinds are passed over: people save all sorts of things. Raises UserError."""
    try:
        text = Path(file).read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from error
    try:
        documents = [msgspec.json.decode(text)]
    except msgspec.DecodeError:
        documents = list(_lines(file, text))
    return Snapshot(tuple(_objects(file, documents)))


def _lines(file: str, text: bytes) -> Iterator[Any]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                yield msgspec.json.decode(line)
            except msgspec.DecodeError as error:
                raise UserError(f"{file}: line {number}: {error}") from error


def _objects(file: str, documents: Iterable[Any], kind: str = "") -> Iterator[ApiObject]:
    """`kind` is that of documents which do not say it themselves, as in a list of one kind."""
    for document in documents:
        if not isinstance(document, dict):
            raise UserError(f"{file}: {document!r:.40} is no object: give what kubectl get -o json prints")
        named = document.get("kind", kind)
        if isinstance(document.get("items"), list):
            yield from _objects(file, document["items"], named.removesuffix("List"))
        elif named in _KINDS:
            try:
                yield msgspec.convert(document, _KINDS[named])
            except msgspec.ValidationError as error:
                name = document.get("metadata", {}).get("name", "")
                raise UserError(f"{file}: {named} {name}: {error}") from error
