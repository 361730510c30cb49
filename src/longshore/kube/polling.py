"""A real cluster that is listed now and then, for processes that cannot or do not want to watch it."""

import asyncio
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any

from longshore.api import Change
from longshore.api.meta import ApiObject, kind_of
from longshore.errors import UserError
from longshore.framework.seam import Cancel, ignore
from longshore.kube.cluster import KubeCluster
from longshore.kube.codec import Undecodable
from longshore.kube.errors import ApiError, ConnectionFailed
from longshore.kube.kinds import KINDS
from longshore.kube.listing import list_all


class PolledCluster(KubeCluster):
    """Its watches report the differences between one `poll` and the next."""

    _watches: "tuple[_Watch, ...]" = ()

    def watch(
        self,
        kinds: Collection[type[ApiObject]],
        on_change: Callable[[Change[Any]], None],
        on_synced: Callable[[], None] = ignore,
    ) -> Cancel:
        watch = _Watch(frozenset(kinds), on_change, on_synced)
        self._watches = (*self._watches, watch)
        return partial(self._unwatch, watch)

    def close(self) -> None:
        super().close()
        self._watches = ()

    async def poll(self) -> None:
        """List all watched kinds, and report the differences. Raises UserError."""
        kinds = {kind for watch in self._watches for kind in watch.kinds}
        try:
            listings = await asyncio.gather(*(self._list(kind) for kind in kinds))
        except (ApiError, ConnectionFailed, Undecodable) as error:
            raise UserError(f"cannot list the cluster's objects: {error}") from error
        self.compare(item for items in listings for item in items)

    def compare(self, objects: Iterable[ApiObject]) -> None:
        """Report how the cluster, which consists of these objects now, differs from before."""
        found = {(kind_of(item), item.key): item for item in objects}
        for watch in self._watches:
            watch.compare({key: item for key, item in found.items() if key[0] in watch.kinds})

    async def _list(self, kind: type[ApiObject]) -> Iterable[ApiObject]:
        selector = KINDS[kind].field_selector
        selectors = {"fieldSelector": selector} if selector else None
        return (await list_all(self._client, self._resource(kind), selectors=selectors)).items.values()

    def _unwatch(self, watch: "_Watch") -> None:
        self._watches = tuple(other for other in self._watches if other is not watch)


class _Watch:
    def __init__(
        self,
        kinds: frozenset[type[ApiObject]],
        on_change: Callable[[Change[Any]], None],
        on_synced: Callable[[], None],
    ) -> None:
        self.kinds = kinds
        self._on_change = on_change
        self._on_synced = on_synced
        self._seen: dict[tuple[type[ApiObject], str], ApiObject] | None = None

    def compare(self, found: dict[tuple[type[ApiObject], str], ApiObject]) -> None:
        first, before = self._seen is None, self._seen or {}
        for key, old in before.items():
            new = found.get(key)
            # A pod that was deleted and created again in between is another pod.
            if new is None or new.metadata.uid != old.metadata.uid:
                self._on_change(Change(old, None))
        for key, new in found.items():
            known = before.get(key)
            if known is None or known.metadata.uid != new.metadata.uid:
                self._on_change(Change(None, new))
            elif known.metadata.resource_version != new.metadata.resource_version:
                self._on_change(Change(known, new))
        self._seen = found
        if first:
            self._on_synced()
