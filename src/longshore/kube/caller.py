"""Requests on behalf of the user of a command, with the user's own permissions.

Every failure becomes one line for the user. A missing permission is named by its verb and resource.
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
    """Return the object, or None if it does not exist. Raises UserError."""
    _require(namespace)
    if not is_dns_subdomain(name):
        return None
    with _user_errors("get", resource, namespace):
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
    """Return the objects by key. Raises UserError, also if one of them cannot be decoded."""
    if namespace:
        _require(namespace)
    with _user_errors("list", resource, namespace):
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
    """Set labels of a cluster-scoped object, and remove those that are None. Otherwise like `patch`."""
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
    """Merge the changes into an object. Return False if it does not exist. Raises UserError.

    It is safe to send such a patch twice. With `dry_run`, the server checks the request but changes nothing.
    """
    params = {"fieldManager": FIELD_MANAGER} | ({"dryRun": "All"} if dry_run else {})
    with _user_errors("patch", resource, namespace):
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
    """Raise unless the name is valid, because it becomes part of a URL."""
    if not is_dns_label(namespace):
        raise UserError(f"{namespace!r} is not a valid namespace: use lowercase letters, digits, and -")


@contextmanager
def _user_errors(verb: str, resource: Resource[Any], namespace: str) -> Iterator[None]:
    """Turn every failure of a request into a `UserError` of one line."""
    try:
        yield
    except ApiError as error:
        message = " ".join(error.message.split())
        if error.status == 403:
            where = f" in namespace {namespace}" if namespace else ""
            raise UserError(f"you need permission to {verb} {resource}{where}: {message}") from error
        raise UserError(f"the API server refused to {verb} {resource}: {message}") from error
    except ConnectionFailed as error:
        raise UserError(f"cannot talk to the API server: {error}") from error
    except (Undecodable, msgspec.DecodeError) as error:
        raise UserError(f"cannot read the {resource} that the API server sent: {error}") from error
