"""The encoding of objects: the frames of a watch, the pages of a list, and the JSON form of both.

A codec turns bytes into the small structs of `longshore.api`. JSON works for every resource, including custom
ones; protobuf (in `protobuf.py`) works for the core types, at half the cost for the server.
"""

from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, TypeVar

import msgspec

from longshore.api.meta import ApiObject
from longshore.kube.errors import ApiStatus

T = TypeVar("T", bound=ApiObject)

INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class Undecodable(Exception):
    """Bytes that could not be decoded as the expected object."""


class Page(msgspec.Struct, Generic[T]):
    """One page of a list. `continue_token` is empty on the last one."""

    items: list[T]
    undecodable: list[str]
    resource_version: str
    continue_token: str

    @classmethod
    def of(cls, found: "Iterable[T | Broken]", resource_version: str, continue_token: str) -> "Page[T]":
        page = cls([], [], resource_version, continue_token)
        for item in found:
            if isinstance(item, Broken):
                page.undecodable.append(f"{item.key}: {item.message}")
            else:
                page.items.append(item)
        return page


class Bookmark(msgspec.Struct):
    """A watch event that says that all changes up to this version were sent.

    `initial_events_end` marks the end of the initial events.
    """

    resource_version: str
    initial_events_end: bool


class Broken(msgspec.Struct):
    """An object that could not be decoded, with as much of its metadata as could be read."""

    key: str
    resource_version: str
    message: str


class Codec(Protocol[T]):
    """Decodes the objects of one resource."""

    accept_list: str
    accept_watch: str

    def page(self, body: bytes) -> Page[T]: ...

    def frames(self, buffer: bytearray) -> Iterator[bytes]:
        """Remove the complete frames of a watch from the buffer, and return them."""

    def event(self, frame: bytes) -> tuple[str, T | Bookmark | ApiStatus | Broken]:
        """Return the type of a watch event and its object. Raises `Undecodable` for invalid bytes."""


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[msgspec.Raw] | None = None


class _WatchEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _BookmarkMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] = {}


class _Bookmark(msgspec.Struct):
    metadata: _BookmarkMeta = msgspec.field(default_factory=_BookmarkMeta)


_decode_list = msgspec.json.Decoder(_List).decode
_decode_event = msgspec.json.Decoder(_WatchEvent).decode
_decode_bookmark = msgspec.json.Decoder(_Bookmark).decode
_decode_status = msgspec.json.Decoder(ApiStatus).decode
_decode_bare = msgspec.json.Decoder(ApiObject).decode


class JsonCodec(Generic[T]):
    """Decodes any resource directly into the given struct."""

    accept_list = "application/json"
    accept_watch = "application/json"

    def __init__(self, type_: type[T]) -> None:
        self._decode = msgspec.json.Decoder(type_).decode

    def page(self, body: bytes) -> Page[T]:
        try:
            listed = _decode_list(body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Undecodable(f"not a list of objects: {error}") from error
        meta = listed.metadata
        return Page.of(map(self._object, listed.items or ()), meta.resource_version, meta.continue_)

    def frames(self, buffer: bytearray) -> Iterator[bytes]:
        end = buffer.rfind(b"\n")
        if end < 0:
            return iter(())
        lines = bytes(buffer[:end]).split(b"\n")
        del buffer[: end + 1]
        return (line for line in lines if line)

    def event(self, frame: bytes) -> tuple[str, T | Bookmark | ApiStatus | Broken]:
        try:
            event = _decode_event(frame)
            if event.type == "BOOKMARK":
                meta = _decode_bookmark(event.object).metadata
                ended = meta.annotations.get(INITIAL_EVENTS_END) == "true"
                return event.type, Bookmark(meta.resource_version, ended)
            if event.type == "ERROR":
                return event.type, _decode_status(event.object)
            return event.type, self._object(event.object)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Undecodable(f"not a watch event: {error}") from error

    def _object(self, raw: msgspec.Raw) -> T | Broken:
        try:
            return self._decode(raw)
        except msgspec.ValidationError as error:
            bare = _decode_bare(raw)
            return Broken(bare.key, bare.metadata.resource_version, str(error))
