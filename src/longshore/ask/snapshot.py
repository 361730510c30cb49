"""The cluster at one moment, for questions about it, read with the rights of whoever asks."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from longshore.api import Pod
from longshore.api.meta import ApiObject
from longshore.api.pod_set import POD_SET_LABEL
from longshore.errors import UserError
from longshore.kube.client import Client
from longshore.kube.codec import Undecodable
from longshore.kube.errors import ApiError, ConnectionFailed
from longshore.kube.kinds import NOT_ENDED, OTHERS
from longshore.kube.listing import list_all
from longshore.kube.resources import NODES, SCHEDULE_PLANS, SCHEDULE_TRIGGERS, WHOLE_PODS, Resource


class Snapshot(msgspec.Struct, frozen=True):
    objects: tuple[ApiObject, ...]
    # What is missing in it, a line each.
    warnings: tuple[str, ...] = ()

    def pod(self, namespace: str, name: str) -> Pod | None:
        key = f"{namespace}/{name}"
        return next((o for o in self.objects if isinstance(o, Pod) and o.key == key), None)


async def take(client: Client, *, namespace: str, name: str) -> Snapshot:
    """All that a scheduler would know of it, and this pod even if it has ended. Raises UserError.

    A kind that the caller may not read is left out, with a warning; without nodes nothing can be said.
    """
    pod = await _pod(client, namespace, name)
    of_sets = (SCHEDULE_TRIGGERS, SCHEDULE_PLANS) if POD_SET_LABEL in pod.metadata.labels else ()
    return joined(await take_all(client, *of_sets), Snapshot((pod,)))


async def take_all(client: Client, *more: Resource[Any]) -> Snapshot:
    """The same without a pod in particular, and with objects of these kinds as well. Raises UserError."""
    nodes, pods, *others = await asyncio.gather(
        readable(client, NODES),
        readable(client, WHOLE_PODS, {"fieldSelector": NOT_ENDED}),
        *(readable(client, resource) for resource in (*OTHERS, *more)),
    )
    if not nodes.objects and nodes.warnings:
        raise UserError(nodes.warnings[0])
    return joined(nodes, pods, *others)


def joined(*parts: Snapshot) -> Snapshot:
    """One snapshot of several; of an object that is in two of them, the last counts."""
    objects = {(type(o), o.key): o for part in parts for o in part.objects}
    return Snapshot(tuple(objects.values()), tuple(line for part in parts for line in part.warnings))


async def _pod(client: Client, namespace: str, name: str) -> Pod:
    path = WHOLE_PODS.path(namespace=namespace, name=name)
    try:
        return msgspec.json.decode(await client.request("GET", path), type=Pod)
    except ApiError as error:
        if error.status == 404:
            raise UserError(f"there is no pod {name} in namespace {namespace}; -n names another") from error
        raise UserError(f"the API server refuses: {error.message}") from error
    except ConnectionFailed as error:
        raise UserError(f"cannot talk to the API server: {error}") from error


async def readable(
    client: Client, resource: Resource[Any], selectors: Mapping[str, str] | None = None
) -> Snapshot:
    """All objects of the kind; none, and a warning, if the caller may not read it. Raises UserError."""
    try:
        listing = await list_all(client, resource, selectors=selectors)
    except ApiError as error:
        if error.status not in (401, 403, 404):
            raise UserError(f"the API server cannot list {resource}: {error}") from error
        return Snapshot((), (f"{resource} left out: {error.message}",))
    except (ConnectionFailed, Undecodable) as error:
        raise UserError(f"cannot list {resource}: {error}") from error
    return Snapshot(
        tuple(listing.items.values()), tuple(f"{resource} left out: {line}" for line in listing.undecodable)
    )
