"""A planner process: it follows the cluster and plans whole pod sets, without binding anything.

It is stateless: every plan is made from what the watches reported, so any number of replicas can stand behind
a Service.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping

import structlog

from longshore.api import Change, Pod
from longshore.api.plan_request import PlanRequest
from longshore.api.pod_set import POD_SET_LABEL
from longshore.cluster import PodInfo
from longshore.engine import Engine, Event
from longshore.kube.client import Client
from longshore.kube.cluster import KubeCluster, Mirror
from longshore.live.follower import Follower
from longshore.live.heartbeat import Heartbeat
from longshore.planning import Plan, greedy
from longshore.planning.problem import Problem

log = structlog.get_logger()

# The share of the caller's remaining time that is spent on planning, at most.
_BUDGET = 0.3


class PlannerHost:
    """`engine` decides with its first profile and never binds. `on_plan` is called with every plan."""

    def __init__(
        self, engine: Engine, client: Client, *, on_plan: Callable[[Plan], None] = lambda _plan: None
    ) -> None:
        self._engine = engine
        self._on_plan = on_plan
        self._heart = Heartbeat()
        self._stopping = False
        # The pods that belong to a set, by key.
        self._members: dict[str, Pod] = {}
        cluster = KubeCluster(client, reads=engine.reads)
        self._follower = Follower(engine, cluster, decides=False, on_event=self._taken_in)

    def _taken_in(self, event: Event, _now: float) -> None:
        if not isinstance(event, Change) or not isinstance(pod := event.object, Pod):
            return
        if event.new is not None and POD_SET_LABEL in pod.metadata.labels:
            self._members[pod.key] = pod
        else:
            self._members.pop(pod.key, None)

    async def run(self) -> None:
        """Follow the cluster until cancelled."""
        async with self._heart.beating():
            await self._follower.run(until=asyncio.Event())

    async def ready(self) -> None:
        """Wait until every object that existed at the beginning is known."""
        await self._follower.until_ready()

    def stop(self) -> None:
        """Report from now on that no more plans should be requested."""
        self._stopping = True

    # The rest of its state may be read from any thread.

    @property
    def mirrors(self) -> Iterator[Mirror]:
        return self._follower.mirrors

    @property
    def live_checks(self) -> Mapping[str, Callable[[], str]]:
        """Checks that fail when only a restart can help. Each returns what is wrong, or an empty string."""
        return {"loop": self._heart.silence}

    @property
    def ready_checks(self) -> Mapping[str, Callable[[], str]]:
        """Checks that fail while it cannot plan."""
        return {"sched-handler-sync": self._behind, "shutdown": self._ending}

    def _behind(self) -> str:
        if self._follower.ready:
            return ""
        missing = ", ".join(mirror.name for mirror in self.mirrors if not mirror.is_synced)
        return f"not all objects are known yet: {missing or 'the last ones are being counted'}"

    def _ending(self) -> str:
        return "stopping" if self._stopping else ""

    async def build(self, request: PlanRequest) -> Mapping[str, str]:
        """Return where each pod of the set is or should go; pods that fit nowhere are left out."""
        members = [
            pod
            for pod in self._members.values()
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
