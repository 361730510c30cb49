"""Pod sets on the real control plane, in a namespace that is watched and has its own nodes.

Nodes carry the label `pool`, and pods ask for it, so that tests share the cluster and one scheduler without
sharing room.
"""

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from tests.deploy.custom_resources import install as install_kinds
from tests.live.pods import manifest

from longshore.api import Change, Pod, SchedulePlan, ScheduleTrigger, Service, plan_name
from longshore.api.kept import kept_condition
from longshore.api.pod_set import PLANNING, POD_SET_LABEL, QUIET_TIME_LABEL, SCHEDULE, SCHEDULER_NAME
from longshore.dev import ControlPlane
from longshore.kube import Client, load
from longshore.kube.errors import ApiError
from longshore.kube.kinds import KINDS
from longshore.kube.reflector import Reflector
from longshore.kube.resources import NODES, PODS, SCHEDULE_PLANS, SCHEDULE_TRIGGERS, Resource

# Names from other modules that tests import from here.
__all__ = ["PLANNING", "SCHEDULE", "install_kinds"]

SET = "batch"
# Pods that only show how far the scheduler has come.
_MARKER = "marker-"
_GROUP = "planner.ciena.io/v1alpha1"
_RESOURCES: dict[str, Resource[Any]] = {
    "Pod": PODS,
    "Node": NODES,
    "Service": KINDS[Service].resource,
    "ScheduleTrigger": SCHEDULE_TRIGGERS,
    "SchedulePlan": SCHEDULE_PLANS,
}
Manifest = dict[str, Any]


# Objects, as people write them.


def member(name: str, *, podset: str = SET, cpu: str = "100m", **spec: Any) -> Manifest:
    made = manifest(name, cpu=cpu, scheduler=SCHEDULER_NAME, labels={POD_SET_LABEL: podset})
    made["spec"] |= {"terminationGracePeriodSeconds": 0, **spec}
    return made


def members(count: int, **more: Any) -> list[Manifest]:
    return [member(f"pod-{number}", **more) for number in range(count)]


def trigger(
    name: str = "go", *, podset: str = SET, state: str = PLANNING, quiet: str = "", **spec: Any
) -> Manifest:
    labels = {POD_SET_LABEL: podset} | ({QUIET_TIME_LABEL: quiet} if quiet else {})
    meta = {"name": name, "labels": labels}
    return {
        "apiVersion": _GROUP,
        "kind": "ScheduleTrigger",
        "metadata": meta,
        "spec": {"state": state, **spec},
    }


def plan(namespace: str, entries: dict[str, str], *, podset: str = SET) -> Manifest:
    meta = {"name": plan_name(namespace, podset), "labels": {POD_SET_LABEL: podset}}
    pairs = [{"pod": pod, "node": node} for pod, node in entries.items()]
    return {"apiVersion": _GROUP, "kind": "SchedulePlan", "metadata": meta, "spec": {"plan": pairs}}


def deployment(name: str, replicas: int) -> str:
    return f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}, {POD_SET_LABEL}: {SET}}}}}
    spec:
      schedulerName: {SCHEDULER_NAME}
      terminationGracePeriodSeconds: 0
      containers: [{{name: main, image: none}}]
"""


def planner_service(name: str, label: str, value: str = "enabled") -> Manifest:
    meta = {"name": name, "labels": {f"planner.ciena.io/{label}": value}}
    spec = {"ports": [{"name": "grpc", "port": 7309, "targetPort": 7777}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}


@dataclass
class World:
    """The present state of one namespace, and all changes since the watch began."""

    plane: ControlPlane
    client: Client
    namespace: str
    nodes: list[str]
    history: list[tuple[float, Change[Any]]] = field(default_factory=list)
    pods: dict[str, Pod] = field(default_factory=dict)
    triggers: dict[str, ScheduleTrigger] = field(default_factory=dict)
    plans: dict[str, SchedulePlan] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._changed = asyncio.Event()
        self._bound_markers: set[str] = set()

    def hear(self, change: Change[Any]) -> None:
        thing = change.object
        self._changed.set()
        if isinstance(thing, Pod) and thing.metadata.name.startswith(_MARKER):
            if thing.spec.node_name:
                self._bound_markers.add(thing.metadata.name)
            return
        self.history.append((time.monotonic(), change))
        stores: dict[type, dict[str, Any]] = {
            Pod: self.pods,
            ScheduleTrigger: self.triggers,
            SchedulePlan: self.plans,
        }
        store = stores[type(thing)]
        if change.new is None:
            store.pop(thing.metadata.name, None)
        else:
            store[thing.metadata.name] = change.new

    # The present state.

    @property
    def placed(self) -> dict[str, str]:
        return {name: pod.spec.node_name for name, pod in self.pods.items() if pod.spec.node_name}

    def plan(self, podset: str = SET) -> SchedulePlan | None:
        return self.plans.get(plan_name(self.namespace, podset))

    def entries(self, podset: str = SET) -> dict[str, str]:
        found = self.plan(podset)
        return {} if found is None else {entry.pod: entry.node for entry in found.spec.plan}

    def state(self, name: str = "go") -> str:
        return self.triggers[name].spec.state

    def condition(self, pod: str) -> tuple[str, str]:
        """Return the reason and the message of the PodScheduled condition, empty if the pod is bound."""
        waits = pod in self.pods and not self.pods[pod].spec.node_name
        found = kept_condition(self.pods[pod].status.conditions, "PodScheduled") if waits else None
        return (found.reason, found.message) if found is not None else ("", "")

    def trigger_condition(self, kind: str, name: str = "go") -> tuple[str, str]:
        """Status and message."""
        return _status_and_message(kind, self.triggers.get(name))

    def plan_condition(self, kind: str, podset: str = SET) -> tuple[str, str]:
        """Status and message."""
        return _status_and_message(kind, self.plan(podset))

    async def events(self, name: str) -> list[Manifest]:
        """Return the events about the object of this name."""
        path = f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events"
        items = msgspec.json.decode(await self.client.request("GET", path))["items"]
        return [item for item in items if item["regarding"]["name"] == name]

    # The history.

    def when(self, happened: Callable[[Change[Any]], bool]) -> float:
        return next(at for at, change in self.history if happened(change))

    def flips(self, name: str = "go") -> list[float]:
        """Return the times at which the trigger changed from Planning to Schedule."""
        return [
            at
            for at, change in self.history
            if isinstance(change.new, ScheduleTrigger)
            and change.new.metadata.name == name
            and change.new.spec.state == SCHEDULE
            and isinstance(change.old, ScheduleTrigger)
            and change.old.spec.state == PLANNING
        ]

    def stored_plans(self, podset: str = SET) -> list[dict[str, str]]:
        """Return the entries of the plan after each change, empty after its deletion."""
        name = plan_name(self.namespace, podset)
        found: list[dict[str, str]] = []
        for _, change in self.history:
            thing = change.object
            if isinstance(thing, SchedulePlan) and thing.metadata.name == name:
                entries = [] if change.new is None else change.new.spec.plan
                now = {entry.pod: entry.node for entry in entries}
                if not found or found[-1] != now:
                    found.append(now)
        return found

    # Actions of users.

    async def create(self, *objects: Manifest) -> None:
        await asyncio.gather(*map(self._post, objects))

    async def _post(self, thing: Manifest) -> None:
        if thing["kind"] == "Pod":
            thing["spec"].setdefault("nodeSelector", {"pool": self.namespace})
        path = _RESOURCES[thing["kind"]].path(namespace=self.namespace)
        await self.client.request("POST", path, body=msgspec.json.encode(thing))

    async def patch(self, kind: str, name: str, changes: Manifest, *, subresource: str = "") -> None:
        path = _RESOURCES[kind].path(namespace=self.namespace, name=name, subresource=subresource)
        merge = "application/merge-patch+json"
        await self.client.request("PATCH", path, body=msgspec.json.encode(changes), content_type=merge)

    async def delete(self, kind: str, *names: str) -> None:
        """Delete objects with the grace period that they specify."""
        paths = [_RESOURCES[kind].path(namespace=self.namespace, name=name) for name in names]
        await asyncio.gather(*(self.client.request("DELETE", path, body=b"{}") for path in paths))

    async def set_state(self, state: str, name: str = "go") -> None:
        await self.patch("ScheduleTrigger", name, {"spec": {"state": state}})

    async def release(self, name: str = "go") -> None:
        await self.set_state(SCHEDULE, name)

    async def label(self, kind: str, name: str, key: str, value: str | None) -> None:
        await self.patch(kind, name, {"metadata": {"labels": {key: value}}})

    # Waits.

    async def until(self, check: Callable[[], bool], *, within: float = 20.0) -> None:
        """Wait until the check is true after a change, and show the present state on timeout."""
        try:
            async with asyncio.timeout(within):
                while not check():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"not so after {within:g} s: {self}") from None

    async def stays(self, check: Callable[[], bool], seconds: float) -> None:
        """Check after every change for this long, and until the scheduler knows all changes so far."""
        assert check(), str(self)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    self._changed.clear()
                    await self._changed.wait()
                    assert check(), str(self)
        await self.until_the_scheduler_knows_all()
        assert check(), str(self)

    async def until_the_scheduler_knows_all(self) -> None:
        """Wait until the scheduler has decided about the pods and nodes in their present state.

        It binds a marker, a pod that only fits a node whose label is the last change of all. A watch tells of
        changes in their order, and pods of equal priority are tried in the order in which they came. The
        history here leaves markers out.
        """
        name = f"{_MARKER}{secrets.token_hex(4)}"
        await self.label("Node", self.nodes[-1], name, "here")
        marker = manifest(name, cpu="0")
        marker["spec"] |= {
            "nodeSelector": {name: "here"},
            "tolerations": [{"operator": "Exists"}],
            "terminationGracePeriodSeconds": 0,
        }
        await self.create(marker)
        await self.until(lambda: name in self._bound_markers, within=20)
        await self.delete("Pod", name)

    async def until_placed(self, count: int, *, within: float = 20.0) -> None:
        await self.until(lambda: len(self.placed) == count, within=within)

    async def until_held(self, count: int) -> None:
        await self.until(
            lambda: sum(self.condition(name)[0] == "WaitingForTrigger" for name in self.pods) == count
        )

    async def until_plan_tells_the_truth(self, *, podset: str = SET, within: float = 20.0) -> None:
        await self.until(lambda: self.entries(podset) == self.placed, within=within)

    def __str__(self) -> str:
        conditions = {name: self.condition(name) for name in self.pods if name not in self.placed}
        return (
            f"placed {self.placed}, waiting {conditions}, "
            f"plans { {name: each.spec.plan for name, each in self.plans.items()} }, "
            f"triggers { {name: each.spec.state for name, each in self.triggers.items()} }"
        )


@asynccontextmanager
async def world(
    plane: ControlPlane, namespace: str, *, nodes: int = 3, cpu: str = "4", memory: str = "8Gi"
) -> AsyncIterator[World]:
    made: list[str] = []
    if nodes:
        made = await asyncio.to_thread(
            plane.add_nodes, nodes, cpu=cpu, memory=memory, prefix=f"{namespace}-", labels={"pool": namespace}
        )
    async with Client(load(plane.kubeconfig)) as client:
        here = World(plane, client, namespace, made)
        reflectors: list[Reflector[Any]] = [
            Reflector(client, resource, here.hear, namespace=namespace)
            for resource in (PODS, SCHEDULE_TRIGGERS, SCHEDULE_PLANS)
        ]
        tasks = [asyncio.create_task(each.run()) for each in reflectors]
        try:
            async with asyncio.timeout(20):
                await asyncio.gather(*(each.synced.wait() for each in reflectors))
            yield here
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for name in here.nodes:
                with contextlib.suppress(ApiError):  # the test may have done so
                    await client.request("DELETE", NODES.path(name=name))


async def add_nodes(here: World, count: int, *, cpu: str = "4", memory: str = "8Gi") -> list[str]:
    """Add nodes that only the pods of this namespace use."""
    made = await asyncio.to_thread(
        here.plane.add_nodes,
        count,
        cpu=cpu,
        memory=memory,
        prefix=f"{here.namespace}-",
        labels={"pool": here.namespace},
    )
    here.nodes += made
    return made


def _status_and_message(kind: str, thing: ScheduleTrigger | SchedulePlan | None) -> tuple[str, str]:
    found = [each for each in thing.status.conditions if each.type == kind] if thing is not None else []
    return (found[0].status, found[0].message) if found else ("", "")
