"""A copy of one resource of the API server, kept up to date, and every change of it told in order.

The state comes first (streamed where the server can, else page by page), then the changes of a watch. When
the watch breaks it goes on from the last version seen; only when the server has forgotten that version (410)
is the state fetched again, and the difference told as ordinary changes, deletions included.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import structlog

from longshore.api.meta import ApiObject, Change
from longshore.kube.backoff import Backoff
from longshore.kube.client import Client
from longshore.kube.codec import Bookmark, Broken, Undecodable
from longshore.kube.errors import ApiError, ConnectionFailed, Status
from longshore.kube.listing import list_all
from longshore.kube.resources import Resource

T = TypeVar("T", bound=ApiObject)

log = structlog.get_logger()

# The API server sends a bookmark about once a minute, so a longer silence means a dead connection.
READ_TIMEOUT = 90.0
# A watch is asked for this long at most (drawn anew each time), so that watches do not all end together.
_WATCH_SECONDS = (300, 600)
# A watch that ends sooner than this without an event is a failure, not the normal end of a watch.
_SHORT_WATCH = 1.0


class KindGone(Exception):
    """The API server does not know the kind."""


class Reflector(Generic[T]):
    """Mirrors a resource into `store` and calls `on_change` for every difference.

    `on_change` is called from the loop that drains the watch and must return at once. `on_synced` is called
    when the store is complete for the first time.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource[T],
        on_change: Callable[[Change[T]], None],
        *,
        on_synced: Callable[[], None] = lambda: None,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        streaming: bool = True,
        read_timeout: float = READ_TIMEOUT,
        backoff: Backoff | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.store: dict[str, T] = {}
        self.synced = asyncio.Event()
        # How often the state was fetched as a whole.
        self.lists = 0
        self._client = client
        self.resource = resource
        self._on_change = on_change
        self.on_synced = on_synced
        self._path = resource.path(namespace=namespace)
        self._selectors = {
            name: selector
            for name, selector in (("labelSelector", label_selector), ("fieldSelector", field_selector))
            if selector
        }
        self._streaming = streaming
        self._read_timeout = read_timeout
        self._backoff = backoff or Backoff()
        self._sleep = sleep
        # The version up to which the store is complete; empty when it has to be fetched as a whole.
        self._version = ""
        self._heard = False
        # For kinds that may not be there: `run` raises KindGone, where else it would try again for ever. What
        # is in the store stays: the deletion of a kind is told as that of its objects, before.
        self.ends_with_its_kind = False

    @property
    def settled(self) -> bool:
        """Whether all objects that existed at the beginning are known."""
        return self.synced.is_set()

    async def run(self) -> None:
        """Mirror until cancelled. Whatever the server or the network does is waited out."""
        while True:
            started = time.monotonic()
            self._heard = False
            try:
                await self._follow()
                if self._heard or time.monotonic() - started > _SHORT_WATCH:
                    continue  # A watch that the server ends cleanly is normal: go on at once.
                reason, wait = "the watch ended as soon as it began", self._backoff.wait()
            except ApiError as error:
                if error.status == 404 and self.ends_with_its_kind:
                    self._version = ""
                    raise KindGone(str(error)) from error
                reason, wait = str(error), self._after_refusal(error)
            except (ConnectionFailed, Undecodable) as error:
                reason, wait = str(error), self._backoff.wait()
            if wait > 0:
                log.warning(
                    "watch interrupted", resource=str(self.resource), reason=reason, wait=round(wait, 2)
                )
                await self._sleep(wait)

    def _after_refusal(self, error: ApiError) -> float:
        """How long to wait; what to ask next is written in `_version` and `_streaming`."""
        if error.status == 410:
            forgotten, self._version = bool(self._version), ""
            # Right away the first time; a server that forgets even what it has just sent is left in peace.
            return 0.0 if forgotten and self._heard else self._backoff.wait()
        if error.status in (400, 422) and self._streaming and not self._version:
            self._streaming = False
            return 0.0
        return self._backoff.wait(error.retry_after)

    async def _follow(self) -> None:
        if self._version:
            await self._watch(fresh=None)
        elif self._streaming:
            await self._watch(fresh={})
        else:
            await self._list()
            await self._watch(fresh=None)

    async def _list(self) -> None:
        listing = await list_all(self._client, self.resource, path=self._path, selectors=self._selectors)
        for message in listing.undecodable:
            log.warning("object left out", resource=str(self.resource), reason=message)
        self._replace(listing.items, listing.resource_version)

    async def _watch(self, fresh: dict[str, T] | None) -> None:
        """Follow the changes after `_version`; with `fresh`, collect the whole state there first."""
        params = self._selectors | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(random.randint(*_WATCH_SECONDS)),
        }
        if fresh is None:
            params["resourceVersion"] = self._version
        else:
            params |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        codec = self.resource.codec
        buffer = bytearray()
        async with self._client.stream(
            self._path, params=params, accept=codec.accept_watch, read_timeout=self._read_timeout
        ) as content:
            while chunk := await content.readany():
                buffer += chunk
                for frame in codec.frames(buffer):
                    kind, item = codec.event(frame)
                    if fresh is None:
                        self._take(kind, item)
                    elif self._collect(fresh, kind, item):
                        fresh = None
                # Data that is already there is read without a pause: let the others have their turn.
                await asyncio.sleep(0)

    def _collect(self, fresh: dict[str, T], kind: str, item: T | Bookmark | Status | Broken) -> bool:
        """One event of the initial state; true when the state is complete."""
        match item:
            case Bookmark(initial_events_end=True):
                self._replace(fresh, item.resource_version)
                return True
            case Bookmark():
                pass
            case Status():
                raise item.error()
            case Broken():
                log.warning(
                    "object left out", resource=str(self.resource), object=item.key, reason=item.message
                )
                fresh.pop(item.key, None)
            case _ if kind == "DELETED":
                fresh.pop(item.key, None)
            case _:
                fresh[item.key] = item
        return False

    def _take(self, kind: str, item: T | Bookmark | Status | Broken) -> None:
        """One event of the watch."""
        match item:
            case Status():
                raise item.error()
            case Bookmark():
                self._version = item.resource_version
            case Broken():
                log.warning(
                    "object left out", resource=str(self.resource), object=item.key, reason=item.message
                )
                self._delete(item.key)
                self._version = item.resource_version or self._version
            case _ if kind == "DELETED":
                self._delete(item.key, last=item)
                self._version = item.metadata.resource_version
            case _:
                self._put(item)
                self._version = item.metadata.resource_version
        if not self._heard:
            self._heard = True
            self._backoff.reset()

    def _replace(self, fresh: dict[str, T], version: str) -> None:
        for key in [key for key in self.store if key not in fresh]:
            self._delete(key)
        for item in fresh.values():
            self._put(item)
        self._version = version
        self._heard = True
        self._backoff.reset()
        self.lists += 1
        if not self.synced.is_set():
            self.synced.set()
            self.on_synced()

    def _put(self, item: T) -> None:
        key = item.key
        old = self.store.get(key)
        if old is not None and old.metadata.uid != item.metadata.uid:
            # Another object took the name while we were not looking.
            self._delete(key)
            old = None
        if old is not None and old.metadata.resource_version == item.metadata.resource_version:
            return
        self.store[key] = item
        self._on_change(Change(old, item))

    def _delete(self, key: str, last: T | None = None) -> None:
        old = self.store.pop(key, None)
        if old is not None:
            self._on_change(Change(last if last is not None else old, None))
