"""Requests in the name of whoever calls a command, with their rights and no others.

Whatever goes wrong becomes one line for them; a right that is missing is named by its verb and resource.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from longshore.api.meta import ApiObject
from longshore.api.names import is_dns_label, is_dns_subdomain
from longshore.errors import UserError
from longshore.kube.client import Client
from longshore.kube.codec import Undecodable
from longshore.kube.errors import ApiError, ConnectionFailed
from longshore.kube.listing import list_all
from longshore.kube.resources import Resource
from longshore.kube.writer import FIELD_MANAGER, Patch

T = TypeVar("T", bound=ApiObject)


async def find(
    client: Client, resource: Resource[T], kind: type[T], *, namespace: str, name: str
) -> T | None:
    """The object, or None if there is none. Raises UserError."""
    _require(namespace)
    if not is_dns_subdomain(name):
        return None
    with _told("get", resource, namespace):
        try:
            body = await client.request("GET", resource.path(namespace=namespace, name=name))
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        return msgspec.json.decode(body, type=kind)


async def list_objects(
    client: Client,
    resource: Resource[T],
    *,
    namespace: str = "",
    selectors: Mapping[str, str] | None = None,
) -> dict[str, T]:
    """By key, of all namespaces unless one is named. Raises UserError, also if not all can be read."""
    if namespace:
        _require(namespace)
    with _told("list", resource, namespace):
        path = resource.path(namespace=namespace)
        listing = await list_all(client, resource, path=path, selectors=selectors)
        if listing.undecodable:
            raise Undecodable(listing.undecodable[0])
    return listing.items


async def set_labels(
    client: Client,
    resource: Resource[T],
    name: str,
    labels: Mapping[str, str | None],
    *,
    dry_run: bool = False,
) -> bool:
    """Set labels of an object without a namespace and take away those that are None; as `patch` does."""
    return await patch(client, resource, {"metadata": {"labels": labels}}, name=name, dry_run=dry_run)


async def patch(
    client: Client,
    resource: Resource[T],
    changes: Mapping[str, object],
    *,
    name: str,
    namespace: str = "",
    dry_run: bool = False,
) -> bool:
    """Merge the changes into an object; False if it is gone.

    Such a patch may be sent twice. With `dry_run` the server says what it would say, and does nothing. Raises
    UserError.
    """
    params = {"fieldManager": FIELD_MANAGER} | ({"dryRun": "All"} if dry_run else {})
    with _told("patch", resource, namespace):
        try:
            await client.request(
                "PATCH",
                resource.path(namespace=namespace, name=name),
                params=params,
                body=msgspec.json.encode(changes),
                content_type=Patch.MERGE.value,
            )
        except ApiError as error:
            if error.status == 404:
                return False
            raise
    return True


def _require(namespace: str) -> None:
    """It becomes part of an address."""
    if not is_dns_label(namespace):
        raise UserError(f"{namespace!r} cannot be the name of a namespace: use lower case, digits and -")


@contextmanager
def _told(verb: str, resource: Resource[Any], namespace: str) -> Iterator[None]:
    """Turn what the API server says, or fails to say, into a line."""
    try:
        yield
    except ApiError as error:
        message = " ".join(error.message.split())
        if error.status == 403:
            where = f" in namespace {namespace}" if namespace else ""
            raise UserError(f"you need the right to {verb} {resource}{where}: {message}") from error
        raise UserError(f"the API server refuses to {verb} {resource}: {message}") from error
    except ConnectionFailed as error:
        raise UserError(f"cannot talk to the API server: {error}") from error
    except (Undecodable, msgspec.DecodeError) as error:
        raise UserError(f"cannot read the {resource} that the API server sent: {error}") from error
