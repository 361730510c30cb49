"""Mirrors of custom resources: their kind may not be there yet, and all else goes on without it."""

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
    """A reflector that begins when the API server knows its kind."""

    def __init__(self, client: Client, reflector: Reflector[Any]) -> None:
        self.reflector = reflector
        # Known not to be there.
        self.absent = False
        self._client = client

    @property
    def settled(self) -> bool:
        """All that there is of the kind is known, or there is none."""
        return self.absent or self.reflector.synced.is_set()

    async def run(self) -> None:
        while not await self._is_served():
            if not self.absent:
                log.warning(
                    f"{self.reflector.resource} is not known to the API server: apply deploy/crds; "
                    "pods of sets are held until then, all others are scheduled"
                )
                self.absent = True
                self.reflector.on_synced()
            await asyncio.sleep(_LOOK_SECONDS)
        self.absent = False
        await self.reflector.run()

    async def _is_served(self) -> bool:
        """Also if we may not read it, or the server is not well: the reflector deals with that."""
        while True:
            try:
                await self._client.request("GET", self.reflector.resource.path(), params={"limit": "1"})
            except ApiError as error:
                return error.status != 404
            except ConnectionFailed:
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return True
