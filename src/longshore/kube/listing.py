"""All objects of a resource as they are now, page by page."""

import asyncio
from collections.abc import Mapping
from typing import Generic, TypeVar

import msgspec

from longshore.api.meta import ApiObject
from longshore.kube.client import Client
from longshore.kube.errors import ApiError
from longshore.kube.resources import Resource

T = TypeVar("T", bound=ApiObject)

_PAGE_SIZE = 500


class Listing(msgspec.Struct, Generic[T]):
    """The objects by key, what was left out and why, and the version of it all."""

    items: dict[str, T]
    undecodable: list[str]
    resource_version: str = ""


async def list_all(
    client: Client, resource: Resource[T], *, path: str = "", selectors: Mapping[str, str] | None = None
) -> Listing[T]:
    """Of all namespaces, unless the path is that of one. Raises ApiError, ConnectionFailed, Undecodable."""
    chosen = dict(selectors or {})
    listing: Listing[T] = Listing({}, [])
    params = chosen | {"limit": str(_PAGE_SIZE)}
    while True:
        try:
            body = await client.request(
                "GET", path or resource.path(), params=params, accept=resource.codec.accept_list
            )
        except ApiError as error:
            if error.status != 410 or "continue" not in params:
                raise
            # The list grew too old between two pages: take it in one piece.
            listing, params = Listing({}, []), chosen
            continue
        page = resource.codec.page(body)
        listing.undecodable += page.undecodable
        listing.items.update((item.key, item) for item in page.items)
        if not page.continue_token:
            listing.resource_version = page.resource_version
            return listing
        params = params | {"continue": page.continue_token}
        await asyncio.sleep(0)
