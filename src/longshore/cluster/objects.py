"""Objects other than nodes and pods, such as services and volumes, as the watch last reported them."""

from collections import deque
from collections.abc import Collection
from itertools import islice
from typing import TypeVar

from longshore.api.meta import ApiObject

T = TypeVar("T", bound=ApiObject)

# The changes of each kind that are kept. A reader that is further behind looks at all objects.
_KEPT_CHANGES = 1000


class ObjectStore:
    def __init__(self) -> None:
        self._objects: dict[type, dict[str, ApiObject]] = {}
        self._versions: dict[type, int] = {}
        self._changed: dict[type, deque[str]] = {}

    def get(self, kind: type[T], key: str) -> T | None:
        return self._objects.get(kind, {}).get(key)  # type: ignore[return-value]

    def all(self, kind: type[T]) -> Collection[T]:
        return self._objects.get(kind, {}).values()  # type: ignore[return-value]

    def version(self, kind: type[ApiObject]) -> int:
        return self._versions.get(kind, 0)

    def changed_since(self, kind: type[ApiObject], version: int) -> list[str] | None:
        """Return the keys of the objects that changed after the version, or None if it is too long ago."""
        changed, number = self._changed.get(kind, ()), self.version(kind) - version
        return [*islice(reversed(changed), number)] if number <= len(changed) else None

    def put(self, kind: type[T], old: T | None, new: T | None) -> None:
        """Store an object that is new, has changed, or is gone."""
        objects = self._objects.setdefault(kind, {})
        self.touch(kind)
        if (touched := new or old) is not None:
            self._changed.setdefault(kind, deque(maxlen=_KEPT_CHANGES)).append(touched.key)
        if new is not None:
            objects[new.key] = new
        elif old is not None:
            objects.pop(old.key, None)

    def touch(self, kind: type[ApiObject]) -> None:
        """Record that an object of this kind has changed."""
        self._versions[kind] = self.version(kind) + 1
