"""Volumes and claims as they will be once our writes are seen, laid over what the API server has told.

An assumed version holds as long as the version that it was made from is the newest one known.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from longshore.api.meta import ApiObject
from longshore.cluster import ClusterState

T = TypeVar("T", bound=ApiObject)


class Assumed(Generic[T]):
    def __init__(self, kind: type[T], cluster: Callable[[], ClusterState]) -> None:
        self._kind = kind
        self._cluster = cluster
        self._objects: dict[str, T] = {}

    def get(self, key: str) -> T | None:
        told = self._cluster().get(self._kind, key)
        return None if told is None else self.over(told)

    def over(self, told: T) -> T:
        """The assumed version of the object, if there is one."""
        if not self._objects:
            return told
        assumed = self._objects.get(told.key)
        return assumed if assumed is not None and _version(assumed) == _version(told) else told

    def assume(self, changed: T) -> None:
        self._expire()
        self._objects[changed.key] = changed

    def restore(self, changed: T) -> None:
        """The write will not be made."""
        if self._objects.get(changed.key) is changed:
            del self._objects[changed.key]

    def _expire(self) -> None:
        cluster, kind = self._cluster(), self._kind
        for key, assumed in list(self._objects.items()):
            told = cluster.get(kind, key)
            if told is None or _version(told) != _version(assumed):
                del self._objects[key]


def _version(thing: ApiObject) -> str:
    return thing.metadata.resource_version
