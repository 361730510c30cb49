"""The rights that the scheduler has in the cluster, asked for once at the start.

A scheduler with few rights still binds pods. Without the others it cannot report why a pod waits, and does
not consider objects that it cannot read.
"""

import asyncio
from typing import Any

import msgspec

from longshore.api.meta import ApiObject
from longshore.engine import Nominate, SetCondition
from longshore.framework.effects import Effect
from longshore.kube.access import may_i
from longshore.kube.client import Client
from longshore.kube.kinds import KINDS
from longshore.kube.recorder import EVENTS
from longshore.kube.resources import NODES, PODS, Resource


class Rights(msgspec.Struct, frozen=True):
    # The kinds, among those asked about, that can be listed and watched.
    readable: tuple[type[ApiObject], ...]
    # Pods and nodes can be watched, not just listed.
    watch: bool
    bind: bool
    events: bool
    status: bool

    @property
    def unable(self) -> tuple[type[Effect], ...]:
        """The reports that cannot be made. Events are left to the recorder."""
        return () if self.status else (SetCondition, Nominate)


async def rights_of(client: Client, kinds: tuple[type[ApiObject], ...]) -> Rights:
    """Return the rights of this process. Raises ApiError and ConnectionFailed."""

    async def readable(resource: Resource[Any]) -> bool:
        return all(await asyncio.gather(*(may_i(client, verb, resource) for verb in ("list", "watch"))))

    found = await asyncio.gather(*(readable(KINDS[kind].resource) for kind in kinds))
    watch, bind, events, status = await asyncio.gather(
        _both(readable(PODS), readable(NODES)),
        may_i(client, "create", PODS, subresource="binding"),
        may_i(client, "create", EVENTS),
        may_i(client, "patch", PODS, subresource="status"),
    )
    return Rights(
        tuple(kind for kind, is_readable in zip(kinds, found, strict=True) if is_readable),
        watch=watch,
        bind=bind,
        events=events,
        status=status,
    )


async def _both(one: Any, other: Any) -> bool:
    return all(await asyncio.gather(one, other))
