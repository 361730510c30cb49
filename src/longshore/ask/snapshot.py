"""The cluster at one moment, read with the permissions of the caller."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from longshore.api import Pod
from longshore.api.meta import ApiObject
from longshore.api.pod_set import POD_SET_LABEL
from longshore.errors import UserError
from longshore.kube.caller import find
from longshore.kube.client import Client
from longshore.kube.codec import Undecodable
from longshore.kube.errors import ApiError, ConnectionFailed
from longshore.kube.kinds import NOT_ENDED, OTHERS
from longshore.kube.listing import list_all
from longshore.kube.resources import NODES, SCHEDULE_PLANS, SCHEDULE_TRIGGERS, WHOLE_PODS, Resource


class Snapshot(msgspec.Struct, frozen=True):
    objects: tuple[ApiObject, ...]
    # What is missing, one line each.
    warnings: tuple[str, ...] = ()

    def pod(self, namespace: str, name: str) -> Pod | None:
        key = f"{namespace}/{name}"
        return next((o for o in self.objects if isinstance(o, Pod) and o.key == key), None)


async def take(client: Client, *, namespace: str, name: str) -> Snapshot:
    """Return all objects that a scheduler would know, and this pod even if it has ended.

    A kind that the caller may not read is left out with a warning. Raises UserError, also without nodes.
    """
    pod = await find(client, WHOLE_PODS, Pod, namespace=namespace, name=name)
    if pod is None:
        raise UserError(f"pod {name} does not exist in namespace {namespace}; -n chooses another namespace")
    of_sets = (SCHEDULE_TRIGGERS, SCHEDULE_PLANS) if POD_SET_LABEL in pod.metadata.labels else ()
    return joined(await take_all(client, *of_sets), Snapshot((pod,)))


async def take_all(client: Client, *more: Resource[Any]) -> Snapshot:
    """Return all objects that a scheduler would know, and those of `more` kinds. Raises UserError."""
    nodes, pods, *others = await asyncio.gather(
        readable(client, NODES),
        readable(client, WHOLE_PODS, {"fieldSelector": NOT_ENDED}),
        *(readable(client, resource) for resource in (*OTHERS, *more)),
    )
    if not nodes.objects and nodes.warnings:
        raise UserError(nodes.warnings[0])
    return joined(nodes, pods, *others)


def joined(*parts: Snapshot) -> Snapshot:
    """Merge snapshots. If an object is in several of them, the last one counts."""
    objects = {(type(o), o.key): o for part in parts for o in part.objects}
    return Snapshot(tuple(objects.values()), tuple(line for part in parts for line in part.warnings))


async def readable(
    client: Client, resource: Resource[Any], selectors: Mapping[str, str] | None = None
) -> Snapshot:
    """Return all objects of the kind, or a warning if the caller may not read it. Raises UserError."""
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
