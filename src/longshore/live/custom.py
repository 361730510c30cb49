"""Mirrors of custom resources: they may not be there, or not for us, and all else goes on without them."""

import asyncio
from typing import Any

import structlog

from longshore.kube.client import Client
from longshore.kube.errors import ApiError, ConnectionFailed
from longshore.kube.reflector import Reflector

log = structlog.get_logger()

# Until the next look whether the kind is there by now, and until the next try where there was no connection.
_LOOK_SECONDS = 5.0
_RETRY_SECONDS = 1.0


class CustomMirror:
    """A reflector that begins when the API server knows its kind, and we may read it."""

    def __init__(self, client: Client, reflector: Reflector[Any]) -> None:
        self.reflector = reflector
        # Known not to be there, or not for us.
        self.absent = False
        self._client = client

    @property
    def settled(self) -> bool:
        """All that there is of the kind is known, or there is none."""
        return self.absent or self.reflector.synced.is_set()

    async def run(self) -> None:
        told = ""
        while hindrance := await self._hindrance():
            if hindrance != told:
                log.warning(f"{hindrance}; pods of sets are held until then, all others are scheduled")
                told = hindrance
            if not self.absent:
                self.absent = True
                self.reflector.on_synced()
            await asyncio.sleep(_LOOK_SECONDS)
        self.absent = False
        await self.reflector.run()

    async def _hindrance(self) -> str:
        """Why it cannot begin; empty also if the server is not well: the reflector deals with that."""
        resource = self.reflector.resource
        while True:
            try:
                await self._client.request("GET", resource.path(), params={"limit": "1"})
            except ApiError as error:
                if error.status == 404:
                    return f"{resource} is not known to the API server: apply deploy/crds"
                if error.status == 403:
                    return f"we may not list {resource}: apply the roles in deploy/"
                return ""
            except ConnectionFailed:
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return ""
