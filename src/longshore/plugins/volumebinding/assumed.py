"""Volumes and claims as they will be after our writes, in front of what the API server has reported.

An assumed version is valid as long as the version that it was made from is the newest known one.
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
        known = self._cluster().get(self._kind, key)
        return None if known is None else self.over(known)

    def over(self, known: T) -> T:
        """Return the assumed version of the object, or the object itself if there is none."""
        if not self._objects:
            return known
        assumed = self._objects.get(known.key)
        return assumed if assumed is not None and _version(assumed) == _version(known) else known

    def assume(self, changed: T) -> None:
        self._expire()
        self._objects[changed.key] = changed

    def restore(self, changed: T) -> None:
        """Drop an assumed version whose write will not be made."""
        if self._objects.get(changed.key) is changed:
            del self._objects[changed.key]

    def _expire(self) -> None:
        cluster, kind = self._cluster(), self._kind
        for key, assumed in list(self._objects.items()):
            known = cluster.get(kind, key)
            if known is None or _version(known) != _version(assumed):
                del self._objects[key]


def _version(obj: ApiObject) -> str:
    return obj.metadata.resource_version
