"""The connection of a short command, which acts with the permissions of the person who runs it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longshore.kube.client import Client


@asynccontextmanager
async def connected(
    kubeconfig: str | None, context: str | None, namespace: str | None = None
) -> "AsyncIterator[tuple[Client, str]]":
    """Yield a client and the namespace to use: the given one, or the context's if it is None."""
    from longshore.kube.client import Client
    from longshore.kube.config import load

    connection = load(kubeconfig, context=context)
    async with Client(connection) as client:
        yield client, connection.namespace if namespace is None else namespace
