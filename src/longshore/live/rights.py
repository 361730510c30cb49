"""What we may do on the cluster: asked before anything is done, so that a missing right is told once.

A scheduler with few rights still binds. It cannot tell people why a pod waits, or look at what it cannot see.
"""

import asyncio
from typing import Any

import msgspec

from longshore.engine import Nominate, SetCondition
from longshore.framework.effects import Effect
from longshore.kube.access import may_i
from longshore.kube.client import Client
from longshore.kube.recorder import EVENTS
from longshore.kube.resources import NODES, PODS, Resource


class Rights(msgspec.Struct, frozen=True):
    # Of the kinds asked about, those that can be listed and watched.
    readable: tuple[Resource[Any], ...]
    # Pods and nodes can be watched, not just listed.
    watch: bool
    bind: bool
    events: bool
    status: bool

    @property
    def unable(self) -> tuple[type[Effect], ...]:
        """Effects that only inform people, and cannot be performed; events are the recorder's concern."""
        return () if self.status else (SetCondition, Nominate)


async def rights_of(client: Client, kinds: tuple[Resource[Any], ...]) -> Rights:
    """Ours. Raises ApiError and ConnectionFailed."""

    async def readable(resource: Resource[Any]) -> bool:
        return all(await asyncio.gather(*(may_i(client, verb, resource) for verb in ("list", "watch"))))

    found = await asyncio.gather(*map(readable, kinds))
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
