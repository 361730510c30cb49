"""Planner services on the real control plane, in two namespaces, with stubs on this machine behind them."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import msgspec
import yaml
from tests.live.planners import Context, Planner
from tests.live.pod_sets import World, planner_service
from tests.live.processes import Running
from tests.waiting import eventually

from longshore.api.pod_set import SCHEDULER_NAME
from longshore.dev import ControlPlane
from longshore.dev.ports import Port
from longshore.kube.resources import SERVICES
from longshore.podset._pb import planner_pb2 as pb

# Longer than all work that must not wait for a planner that hangs.
CALL_SECONDS = 4.0
Nodes = Callable[[pb.SchedulePlanRequest], Mapping[str, str]]


class PlannerServices:
    """Two namespaces for planner services: `one` and `other`, each with an address on this machine."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.names = {each: f"planner-{secrets.token_hex(4)}" for each in ("one", "other")}
        self.ports = {each: Port() for each in self.names}
        # The scheduler that must see the services, once it runs.
        self.scheduler: Running | None = None

    def arguments(self, fallback: str) -> dict[str, object]:
        """Return the arguments of the plugin. The name of each Service is `svc`."""
        return {
            "callTimeout": f"{CALL_SECONDS:g}s",
            "plannerFallback": fallback,
            "plannerNamespaces": list(self.names.values()),
            "plannerAddresses": {
                f"{name}/svc": f"127.0.0.1:{self.ports[each].number}" for each, name in self.names.items()
            },
        }

    @asynccontextmanager
    async def planner(self, each: str, answer: Nodes) -> AsyncIterator[Planner]:
        """Run a stub that listens on the port of this namespace and answers at once."""

        async def respond(message: bytes, context: Context) -> bytes:
            nodes = answer(pb.SchedulePlanRequest.FromString(message))
            return pb.SchedulePlanResponse(assignments=nodes).SerializeToString()

        async with Planner(respond).running(port=self.ports[each].number) as stub:
            yield stub

    @asynccontextmanager
    async def service(
        self, here: World, each: str, label: str, value: str = "enabled"
    ) -> AsyncIterator[World]:
        place = World(self.plane, here.client, self.names[each], [])
        await place.create(planner_service("svc", label, value))
        await self._until_services_are_known(here)
        try:
            yield place
        finally:
            await place.delete("Service", "svc")
            await self._until_services_are_known(here)

    async def label(self, place: World, key: str, value: str | None) -> None:
        """Change a label of the service, and wait until the scheduler knows it."""
        await place.label("Service", "svc", key, value)
        # The same watch tells of this one after the change.
        await place.create(planner_service("marker", "none"))
        await self._until_services_are_known(place)
        await place.delete("Service", "marker")
        await self._until_services_are_known(place)

    async def _until_services_are_known(self, here: World) -> None:
        """Wait until the scheduler mirrors as many services as there are: none was replaced meanwhile."""
        scheduler = self.scheduler
        assert scheduler is not None
        there = len(msgspec.json.decode(await here.client.request("GET", SERVICES.path()))["items"])
        await asyncio.to_thread(
            eventually,
            lambda: scheduler.ask("/metrics")[1],
            lambda page: f'longshore_reflector_objects{{resource="services"}} {there:.1f}\n' in page,
            what=f"{there} services mirrored",
            pause=0.02,
        )


def configuration(services: PlannerServices, fallback: str) -> str:
    profile = {
        "schedulerName": SCHEDULER_NAME,
        "plugins": {
            "multiPoint": {
                "enabled": [{"name": "PodSetPlanner"}],
                "disabled": [{"name": "DefaultPreemption"}],
            }
        },
        "pluginConfig": [{"name": "PodSetPlanner", "args": services.arguments(fallback)}],
    }
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return yaml.safe_dump(head | {"profiles": [{"schedulerName": "longshore"}, profile]})


def all_to(node: str, *names: str) -> Nodes:
    return lambda _request: dict.fromkeys(names, node)
