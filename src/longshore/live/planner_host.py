"""A planner of its own: it follows the cluster and answers for whole sets, without binding anything.

Stateless: every answer is made from what the watch told. So any number of them can stand behind a Service.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import structlog

from longshore.api.plan_request import PlanRequest
from longshore.api.pod_set import POD_SET_LABEL
from longshore.cluster import PodInfo
from longshore.engine import Engine
from longshore.engine.events import Event
from longshore.kube.client import Client
from longshore.kube.kinds import NOT_ENDED, OTHERS
from longshore.kube.reflector import Reflector
from longshore.kube.resources import NODES, Resource, pods_with
from longshore.live.heartbeat import Heartbeat
from longshore.live.vitals import Mirror, mirrors_of
from longshore.planning import Plan, greedy
from longshore.planning.problem import Problem

log = structlog.get_logger()

# Of the time that the caller has left, what is spent on planning at most.
_BUDGET = 0.3


class PlannerHost:
    """`engine` decides with its first profile; it is never asked to bind. `on_plan` hears of every plan."""

    def __init__(
        self, engine: Engine, client: Client, *, on_plan: Callable[[Plan], None] = lambda _plan: None
    ) -> None:
        self._engine = engine
        self._on_plan = on_plan
        self._heart = Heartbeat()
        self._stopping = False
        self._ready = asyncio.Event()
        self._pods = self._mirror(client, pods_with(engine.reads), field_selector=NOT_ENDED)
        others = [self._mirror(client, each) for each in (NODES, *OTHERS)]
        self._reflectors: list[Reflector[Any]] = [self._pods, *others]

    def _mirror(self, client: Client, resource: Resource[Any], *, field_selector: str = "") -> Reflector[Any]:
        return Reflector(
            client, resource, self._receive, on_synced=self._synced, field_selector=field_selector
        )

    def _receive(self, event: Event) -> None:
        self._engine.receive(event, now=time.monotonic())

    def _synced(self) -> None:
        if all(each.synced.is_set() for each in self._reflectors):
            self._ready.set()

    async def run(self) -> None:
        """Follow the cluster until cancelled."""
        async with self._heart.beating():
            await asyncio.gather(*(each.run() for each in self._reflectors))

    async def ready(self) -> None:
        """All that there is is known."""
        await self._ready.wait()

    def stop(self) -> None:
        """Say that no more plans are to be asked for."""
        self._stopping = True

    # What can be known about it from any thread.

    @property
    def mirrors(self) -> Iterator[Mirror]:
        return mirrors_of(self._reflectors)

    @property
    def live_checks(self) -> Mapping[str, Callable[[], str]]:
        """Those that fail when only a restart can help. Each tells what is wrong, or nothing."""
        return {"loop": self._heart.silence}

    @property
    def ready_checks(self) -> Mapping[str, Callable[[], str]]:
        """Those that fail while it cannot plan."""
        return {"sched-handler-sync": self._behind, "shutdown": self._ending}

    def _behind(self) -> str:
        missing = ", ".join(mirror.name for mirror in self.mirrors if not mirror.is_synced)
        return f"not all objects are known yet: {missing}" if missing else ""

    def _ending(self) -> str:
        return "stopping" if self._stopping else ""

    async def build(self, request: PlanRequest) -> Mapping[str, str]:
        """Where each pod of the set is, or is to go; who fits nowhere is left out."""
        members = [
            pod
            for pod in self._pods.store.values()
            if pod.metadata.namespace == request.namespace
            and pod.metadata.labels.get(POD_SET_LABEL) == request.pod_set
            and pod.metadata.deletion_timestamp is None
        ]
        answer = {pod.metadata.name: pod.spec.node_name for pod in members if pod.spec.node_name}
        waiting = [pod for pod in members if not pod.spec.node_name]
        eligible = {
            pod.metadata.uid: request.eligible_nodes
            for pod in waiting
            if pod.metadata.name == request.scheduled_pod and request.eligible_nodes
        }
        problem = Problem(
            self._engine.chooser(self._engine.scheduler_name),
            [PodInfo.of(pod) for pod in waiting],
            eligible=eligible,
        )
        plan = greedy.plan(problem, clock=time.monotonic, budget=_BUDGET)
        self._on_plan(plan)
        log.info(
            "planned",
            namespace=request.namespace,
            pod_set=request.pod_set,
            pods=len(waiting),
            left_out=len(plan.left_out),
            seconds=round(plan.seconds, 3),
        )
        answer.update((each.pod.partition("/")[2], each.node) for each in plan.assignments)
        return answer
