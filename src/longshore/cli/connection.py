"""The API server as short commands talk to it: with the rights of the person who calls them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longshore.kube.client import Client


@asynccontextmanager
async def connected(
    kubeconfig: str | None, context: str | None, namespace: str | None = None
) -> "AsyncIterator[tuple[Client, str]]":
    """A client, and the namespace to look in: the given one, or that of the context."""
    from longshore.kube.client import Client
    from longshore.kube.config import load

    connection = load(kubeconfig, context=context)
    async with Client(connection) as client:
        yield client, connection.namespace if namespace is None else namespace
