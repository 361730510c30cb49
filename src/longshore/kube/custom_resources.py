"""Mirrors of kinds that the API server may not know, or may not let us read: the rest works without them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from longshore.kube.client import Client
from longshore.kube.errors import ApiError, ConnectionFailed
from longshore.kube.reflector import KindGone, Reflector

log = structlog.get_logger()

# Seconds until the next look whether the kind exists now, and until the next try if there was no answer.
_LOOK_SECONDS = 5.0
_RETRY_SECONDS = 1.0


class CustomMirror:
    """A reflector that begins once the API server knows its kind and lets us read it."""

    def __init__(
        self,
        client: Client,
        reflector: Reflector[Any],
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.reflector = reflector
        reflector.ends_with_its_kind = True
        # Whether the kind is known not to exist, or not to be readable.
        self.absent = False
        self._client = client
        self._sleep = sleep

    @property
    def settled(self) -> bool:
        """Whether all objects of the kind are known, or the kind is absent."""
        return self.absent or self.reflector.synced.is_set()

    async def run(self) -> None:
        while True:
            await self._until_it_can_begin()
            try:
                await self.reflector.run()
            except KindGone:
                await self._sleep(_RETRY_SECONDS)

    async def _until_it_can_begin(self) -> None:
        logged = ""
        while hindrance := await self._hindrance():
            if hindrance != logged:
                log.warning(f"{hindrance}; pods of sets are held until then, all others are scheduled")
                logged = hindrance
            if not self.absent:
                self.absent = True
                self.reflector.on_synced()
            await self._sleep(_LOOK_SECONDS)
        self.absent = False

    async def _hindrance(self) -> str:
        """Return why it cannot begin; empty if it can. A server that does not answer is asked again."""
        resource = self.reflector.resource
        logged = ""
        while True:
            wait = _RETRY_SECONDS
            try:
                await self._client.request("GET", resource.path(), params={"limit": "1"})
            except ApiError as error:
                if error.status == 404:
                    return f"{resource} is not known to the API server: apply deploy/crds"
                if error.status == 403:
                    return f"no permission to list {resource}: apply the roles in deploy/"
                reason, wait = str(error), error.retry_after or wait
            except ConnectionFailed as error:
                reason = str(error)
            else:
                return ""
            if reason != logged:
                log.warning("cannot tell whether the kind exists", resource=str(resource), reason=reason)
                logged = reason
            await self._sleep(wait)
