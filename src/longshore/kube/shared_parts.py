"""Parts of objects that are decoded once and shared, because equal bytes mean equal parts.

A table is filled as parts are seen. The decoder of a part is derived from its struct and its protobuf
message, which have the same field names.
"""

import types
import typing
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from google.protobuf.message import Message

V = TypeVar("V")

# The most parts of each kind that are cached. Real clusters have hundreds of templates. Beyond the limit the
# table is emptied, and earlier parts are not shared with later ones.
_LIMIT = 50_000


class Shared(dict[Any, V]):
    """Decoded parts, by their bytes."""

    def __init__(self, decode: Callable[[Any], V], *, limit: int = _LIMIT) -> None:
        super().__init__()
        self._decode = decode
        self._limit = limit

    def __missing__(self, key: Any) -> V:
        if len(self) >= self._limit:
            self.clear()
        part = self[key] = self._decode(key)
        return part


def part_decoder(struct: type[V], message: type[Message]) -> Callable[[bytes], V]:
    """Return a function that decodes the bytes of the message into the struct."""
    build = _builder(struct)

    def decode(raw: bytes) -> V:
        return build(message.FromString(raw))

    return decode


def tuple_of(decode: Callable[[bytes], V]) -> Callable[[tuple[bytes, ...]], tuple[V, ...]]:
    return lambda raws: tuple(map(decode, raws))


def _builder(struct: type[V]) -> Callable[[Any], V]:
    hints = typing.get_type_hints(struct)
    fields = [(name, _value_reader(_optional_type(hint))) for name, hint in hints.items()]

    def build(message: Any) -> V:
        present = {descriptor.name for descriptor, _ in message.ListFields()}
        return struct(**{name: read(getattr(message, name)) for name, read in fields if name in present})

    return build


def _optional_type(hint: Any) -> Any:
    """Return `T` for `T | None`, and any other hint unchanged."""
    if isinstance(hint, types.UnionType):
        return next(arg for arg in hint.__args__ if arg is not type(None))
    return hint


def _value_reader(hint: Any) -> Callable[[Any], Any]:
    if typing.get_origin(hint) is tuple:
        read_item = _value_reader(typing.get_args(hint)[0])
        return lambda items: tuple(read_item(item) for item in items)
    if typing.get_origin(hint) is dict:
        return lambda mapping: {key: _map_value(value) for key, value in mapping.items()}
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _builder(hint)
    return lambda scalar: scalar


def _map_value(value: Any) -> str:
    return value if isinstance(value, str) else str(value.string)
