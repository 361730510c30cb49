"""Lists all objects of a resource, page by page."""

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
    """The objects by key, messages about those that could not be decoded, and the version of the list."""

    items: dict[str, T]
    undecodable: list[str]
    resource_version: str = ""


async def list_all(
    client: Client, resource: Resource[T], *, path: str = "", selectors: Mapping[str, str] | None = None
) -> Listing[T]:
    """List all objects, or those under `path`. Raises ApiError, ConnectionFailed, and Undecodable."""
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
            # The list expired between two pages: fetch it as a whole.
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
