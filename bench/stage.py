"""The pods and events of a contest, in the same state before every turn.

Each turn begins with empty nodes, new pending pods, no events, and an etcd without history, so that what one
side leaves behind does not slow down the next.
"""

import asyncio
import os
import time
from base64 import b64encode
from collections import Counter
from itertools import cycle
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp
import msgspec
from bench.ceiling import Target
from bench.workloads import MAX_SKEW, PINNED, PODS_PER_NODE
from bench.workloads import pod as pod_object

from longshore.errors import UserError
from longshore.kube.client import Client
from longshore.kube.config import load
from longshore.kube.errors import ApiError, ConnectionFailed
from longshore.kube.pool import Pool
from longshore.kube.recorder import EVENTS
from longshore.kube.resources import PODS

NAMESPACE = "bench"
EVENTS_WITHIN = 10.0
_PODS = PODS.path(namespace=NAMESPACE)
_EVENTS = EVENTS.path(namespace=NAMESPACE)
_IN_FLIGHT = 48
_POLL_SECONDS = 0.1
# The API server ends every request after 60 s. The next deletion deletes what is left.
_DELETE_SECONDS = 65.0
_DELETIONS = 10
_REST_SECONDS = 1.0
_EVENT_KEYS = f"/registry/events/{NAMESPACE}/".encode()
# The key after all keys with this prefix.
_ALL_EVENTS = {
    "key": b64encode(_EVENT_KEYS).decode(),
    "range_end": b64encode(_EVENT_KEYS[:-1] + b"0").decode(),
}
_AT_ONCE = msgspec.json.encode({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0})


class _Meta(msgspec.Struct):
    uid: str


class _Made(msgspec.Struct):
    metadata: _Meta


class _PodSpec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct):
    metadata: _Meta
    spec: _PodSpec


class _PodList(msgspec.Struct):
    items: list[_Pod]


class _Event(msgspec.Struct):
    reason: str
    regarding: _Meta


class _EventList(msgspec.Struct):
    items: list[_Event]


class _ListMeta(msgspec.Struct, rename="camel"):
    remaining_item_count: int = 0


class _FirstOfMany(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


class _EtcdHeader(msgspec.Struct):
    revision: str


class _EtcdAnswer(msgspec.Struct):
    header: _EtcdHeader


class Stage:
    """The pods and events of one turn. `nodes` has the names of the nodes with their zones."""

    def __init__(
        self, kubeconfig: Path, etcd_folder: Path, *, nodes: dict[str, str], pods: int, workload: str
    ) -> None:
        self.pods = pods
        # The names of the pods, the same in every turn, and the node on which the ceiling puts each pod.
        self.places = dict(zip((f"pod-{number:05d}" for number in range(pods)), cycle(nodes), strict=False))
        self._nodes = nodes
        self._workload = workload
        self._etcd_folder = etcd_folder
        connection = load(kubeconfig)
        self.client = Client(connection)
        self._pool = Pool(connection, size=_IN_FLIGHT)

    async def __aenter__(self) -> Self:
        await self.client.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._pool.__aexit__(kind, error, trace)
        await self.client.__aexit__(kind, error, trace)

    async def set_up(self, scheduler_name: str) -> list[Target]:
        """Create the pods, and return them with their nodes."""

        async def create(name: str, node: str) -> Target:
            body = pod_object(name, workload=self._workload, scheduler_name=scheduler_name)
            answer = await self._pool.send("POST", _PODS, msgspec.json.encode(body))
            if answer.status != 201:
                raise UserError(f"{name} was not created: {answer.body.decode()}")
            uid = msgspec.json.decode(answer.body, type=_Made).metadata.uid
            return Target(NAMESPACE, name, uid, node)

        made = await asyncio.gather(*(create(name, node) for name, node in self.places.items()))
        await asyncio.sleep(_REST_SECONDS)
        return made

    async def clear(self) -> None:
        """Delete the pods and the events, also from the history of etcd."""
        await self._delete_pods()
        await self._clean_etcd()

    async def wait_for_notes(self, *, within: float, count: int | None = None) -> None:
        """Wait until there are as many events of any reason as pods, or this many."""
        until = time.perf_counter() + within
        while await self._count(_EVENTS) < (self.pods if count is None else count):
            if time.perf_counter() > until:
                raise UserError(f"not all events exist after {within:g} s")
            await asyncio.sleep(_POLL_SECONDS)

    async def wait_for_events(self, *, last_bind: float) -> tuple[int, float]:
        """Wait until all pods have a Scheduled event, but not longer than a scheduler has time for it.

        Returns the number of pods that have one, and the time.
        """
        while True:
            now = time.perf_counter()
            overdue = now > last_bind + EVENTS_WITHIN
            if overdue or await self._count(_EVENTS) >= self.pods:
                # Other events can be among those, for pods that did not fit at first.
                found = await self._pods_with_event()
                if overdue or found >= self.pods:
                    return found, now
            await asyncio.sleep(_POLL_SECONDS)

    async def faults(self, made: list[Target], *, constrained: bool) -> list[str]:
        """Return what is wrong with the nodes of the pods. Constraints are checked only if `constrained`."""
        body = await self.client.request("GET", _PODS)
        pods = msgspec.json.decode(body, type=_PodList).items
        found = []
        if {pod.metadata.uid for pod in pods} != {target.uid for target in made}:
            found.append(f"the {len(pods)} pods at the end are not the {len(made)} of the start")
        per_node = Counter(pod.spec.node_name for pod in pods)
        if strange := set(per_node) - set(self._nodes):
            found.append(f"{sum(per_node[node] for node in strange)} pods are on no node of the cluster")
        node, most = per_node.most_common(1)[0]
        if most > PODS_PER_NODE:
            found.append(f"{node} has {most} pods and room for {PODS_PER_NODE}")
        if self._workload == PINNED:
            pinned_to = {target.uid: target.node for target in made}
            astray = sum(pod.spec.node_name != pinned_to.get(pod.metadata.uid) for pod in pods)
            if astray:
                found.append(f"{astray} pods are not on the node that they are pinned to")
        if constrained and self._workload == "spread":
            per_zone = Counter(dict.fromkeys(self._nodes.values(), 0))
            for pod in pods:
                per_zone[self._nodes.get(pod.spec.node_name, "")] += 1
            skew = max(per_zone.values()) - min(per_zone.values())
            if skew > MAX_SKEW:
                found.append(f"the zones differ by {skew} pods, but at most {MAX_SKEW} are allowed")
        return found

    async def _count(self, path: str) -> int:
        """Return the size of a collection. Without a selector, the server says how many follow the first."""
        body = await self.client.request("GET", path, params={"limit": "1"})
        first = msgspec.json.decode(body, type=_FirstOfMany)
        return len(first.items or ()) + first.metadata.remaining_item_count

    async def _pods_with_event(self) -> int:
        body = await self.client.request("GET", _EVENTS)
        events = msgspec.json.decode(body, type=_EventList).items
        return len({event.regarding.uid for event in events if event.reason == "Scheduled"})

    async def _delete_pods(self) -> None:
        for _ in range(_DELETIONS):
            try:
                await self.client.request("DELETE", _PODS, body=_AT_ONCE, timeout=_DELETE_SECONDS)
            except (ApiError, ConnectionFailed) as error:
                reason = str(error)
            else:
                reason = "some pods are left each time"
            if await self._count(_PODS) == 0:
                return
        raise UserError(f"the pods could not be deleted: {reason}")

    async def _clean_etcd(self) -> None:
        """Delete the events and all history, over etcd's own socket.

        The API server would delete the events one by one, and it compacts etcd only every five minutes. It
        has no cache of events that could become stale.
        """
        folder = os.open(self._etcd_folder, os.O_PATH)
        try:
            # With this name the path of the socket is always shorter than the limit of 108 bytes.
            connector = aiohttp.UnixConnector(f"/proc/self/fd/{folder}/etcd.sock")
            async with aiohttp.ClientSession(
                "http://etcd", connector=connector, raise_for_status=True
            ) as etcd:
                async with etcd.post("/v3/kv/deleterange", json=_ALL_EVENTS) as answer:
                    revision = msgspec.json.decode(await answer.read(), type=_EtcdAnswer).header.revision
                async with etcd.post("/v3/kv/compaction", json={"revision": revision, "physical": True}):
                    pass
                async with etcd.post("/v3/maintenance/defragment", json={}):
                    pass
        finally:
            os.close(folder)
        if left := await self._count(_EVENTS):
            raise UserError(f"{left} events could not be deleted")
