"""A snapshot in a file: each line is the JSON of an object, with only the fields that scheduling reads.

The output of `kubectl get … -o json` can be read as well.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from longshore.api.config_map import ConfigMap
from longshore.api.meta import ApiObject, kind_of
from longshore.api.pod_run import PodRun
from longshore.ask.snapshot import Snapshot
from longshore.errors import UserError
from longshore.kube.kinds import KINDS

# Scheduling does not read ConfigMaps, and a PodRun is another view of a pod.
_KINDS: Mapping[str, type[ApiObject]] = {
    kind.__name__: kind for kind in KINDS if kind not in (ConfigMap, PodRun)
}


def save(snapshot: Snapshot, file: str) -> None:
    """Write the snapshot to a file. Raises UserError."""
    try:
        with Path(file).open("wb") as lines:
            for found in snapshot.objects:
                document = {"kind": kind_of(found).__name__, **msgspec.to_builtins(found)}
                lines.write(msgspec.json.encode(document) + b"\n")
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror}") from error


def read(file: str) -> Snapshot:
    """Return the snapshot in a file. Objects of other kinds are ignored. Raises UserError."""
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
    """Yield the objects; `kind` is the kind of documents without one, such as the items of a list."""
    for document in documents:
        if not isinstance(document, dict):
            raise UserError(
                f"{file}: {document!r:.40} is not an object: use a file of --save or kubectl get -o json"
            )
        named = document.get("kind", kind)
        if isinstance(document.get("items"), list):
            yield from _objects(file, document["items"], named.removesuffix("List"))
        elif named in _KINDS:
            try:
                yield msgspec.convert(document, _KINDS[named])
            except msgspec.ValidationError as error:
                name = document.get("metadata", {}).get("name", "")
                raise UserError(f"{file}: {named} {name}: {error}") from error
