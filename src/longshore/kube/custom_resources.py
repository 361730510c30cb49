"""Mirrors of custom resources: they may not be there, or not for us, and all else goes on without them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from longshore.kube.client import Client
from longshore.kube.errors import ApiError, ConnectionFailed
from longshore.kube.reflector import KindGone, Reflector

log = structlog.get_logger()

# Until the next look whether the kind is there by now, and until the next try where there was no answer.
_LOOK_SECONDS = 5.0
_RETRY_SECONDS = 1.0


class CustomMirror:
    """A reflector that begins when the API server knows its kind, and we may read it."""

    def __init__(
        self,
        client: Client,
        reflector: Reflector[Any],
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.reflector = reflector
        reflector.ends_with_its_kind = True
        # Known not to be there, or not for us.
        self.absent = False
        self._client = client
        self._sleep = sleep

    @property
    def settled(self) -> bool:
        """All that there is of the kind is known, or there is none."""
        return self.absent or self.reflector.synced.is_set()

    async def run(self) -> None:
        while True:
            await self._until_it_can_begin()
            try:
                await self.reflector.run()
            except KindGone:
                await self._sleep(_RETRY_SECONDS)

    async def _until_it_can_begin(self) -> None:
        told = ""
        while hindrance := await self._hindrance():
            if hindrance != told:
                log.warning(f"{hindrance}; pods of sets are held until then, all others are scheduled")
                told = hindrance
            if not self.absent:
                self.absent = True
                self.reflector.on_synced()
            await self._sleep(_LOOK_SECONDS)
        self.absent = False

    async def _hindrance(self) -> str:
        """Why it cannot begin; empty if it can. A server that is not well is asked again until it is."""
        resource = self.reflector.resource
        told = ""
        while True:
            wait = _RETRY_SECONDS
            try:
                await self._client.request("GET", resource.path(), params={"limit": "1"})
            except ApiError as error:
                if error.status == 404:
                    return f"{resource} is not known to the API server: apply deploy/crds"
                if error.status == 403:
                    return f"we may not list {resource}: apply the roles in deploy/"
                reason, wait = str(error), error.retry_after or wait
            except ConnectionFailed as error:
                reason = str(error)
            else:
                return ""
            if reason != told:
                log.warning("cannot tell whether the kind is there", resource=str(resource), reason=reason)
                told = reason
            await self._sleep(wait)
