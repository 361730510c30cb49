"""The three clusters behind the seam, each with what a test does to it from outside."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar

import msgspec
from aiohttp import web
from tests.kube.proxy import Asked, DropBefore, Fault, LoseAnswer, Proxy
from tests.live.planners import answering
from tests.podset.test_planner_wire import PLAN, PLAN_BYTES, REQUEST

from longshore.api import Change
from longshore.api.config_map import ConfigMap
from longshore.api.meta import ApiObject, ObjectMeta
from longshore.config import Webhook
from longshore.dev import ControlPlane
from longshore.engine import Answered, Effect, Failed, Outcome
from longshore.framework.effects import CallWebhook
from longshore.framework.seam import Cluster
from longshore.kube import ApiError, Client, EventRecorder, Pool, Writer, load
from longshore.kube.cluster import KubeCluster
from longshore.kube.kinds import KINDS
from longshore.kube.operations import Operations
from longshore.kube.recorder import EVENTS
from longshore.kube.resources import CONFIG_MAPS, PODS
from longshore.kube.webhook_calls import WebhookCalls
from longshore.sim import Faults, SimulatedCluster
from longshore.sim.agenda import Agenda
from longshore.sim.recorded import RecordedCluster
from longshore.testing import pod

__all__ = ["PLAN", "REQUEST", "Stage", "real", "recorded", "simulated"]

T = TypeVar("T", bound=ApiObject)

# The two webhooks of every stage.
ECHOES, FAILS = 0, 1


class Stage(Protocol):
    """A cluster, and what others do to it. Names are those of objects in `namespace`."""

    namespace: str
    # A planner that answers with PLAN, and an address at which there is none.
    planner: str
    nowhere: str

    @property
    def cluster(self) -> Cluster: ...

    async def create_pod(self, name: str, *, gated: bool = False, deleting: bool = False) -> str:
        """Return the pod's UID."""
        ...

    async def create_map(self, name: str, **data: str) -> str:
        """Return the ConfigMap's UID."""
        ...

    async def delete(self, kind: type[ApiObject], name: str) -> None: ...

    async def found(self, kind: type[T], name: str) -> T | None: ...

    async def events(self) -> Sequence[str]:
        """Return the notes of all events."""
        ...

    def lose_answer(self) -> None:
        """Let the next write land, and lose its answer."""
        ...

    def lose_request(self) -> None:
        """Lose the next write before it lands."""
        ...

    async def until(self, condition: Callable[[], bool]) -> None:
        """Let time pass until it is so."""
        ...


class Virtual:
    """A simulated cluster in virtual time, so that no test waits."""

    namespace = "default"
    planner = "planner:7309"
    nowhere = "nowhere:7309"

    def __init__(self, agenda: Agenda, cluster: SimulatedCluster) -> None:
        self.cluster = cluster
        self._agenda = agenda
        cluster.planners = {self.planner: lambda request: PLAN if request == REQUEST else {}}
        cluster.answer = _webhook

    def put(self, item: ApiObject) -> None:
        self.cluster.put(item)

    async def create_pod(self, name: str, *, gated: bool = False, deleting: bool = False) -> str:
        # A pod that is created again under the same name is another pod.
        made = pod(name).uid("").scheduler("contract")
        made = made.gates("wait") if gated else made
        self.put(made.deleting() if deleting else made)
        return self.cluster.pods[f"default/{name}"].metadata.uid

    async def create_map(self, name: str, **data: str) -> str:
        self.put(ConfigMap(ObjectMeta(name=name, namespace="default"), data))
        return self.cluster.others[ConfigMap][f"default/{name}"].metadata.uid

    async def delete(self, kind: type[ApiObject], name: str) -> None:
        self.cluster.delete(kind(ObjectMeta(name=name, namespace="default")))

    async def found(self, kind: type[T], name: str) -> T | None:
        return next(
            (item for item in self.cluster.objects if isinstance(item, kind) and _is(item, name)), None
        )

    async def events(self) -> Sequence[str]:
        return [event.note for event in self.cluster.events]

    def lose_answer(self) -> None:
        self._strike(Faults(lost=1.0))

    def lose_request(self) -> None:
        self._strike(Faults(failed=1.0))

    def _strike(self, faults: Faults) -> None:
        self.cluster.write_faults = faults

        def once(effect: Effect) -> Outcome | None:
            # The faults of this write are chosen when it asks for the answer. The next writes succeed.
            self._agenda.after(0.0, self._heal)
            return _webhook(effect)

        self.cluster.answer = once

    def _heal(self) -> None:
        self.cluster.write_faults = Faults()
        self.cluster.answer = _webhook

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            due = self._agenda.next_due
            assert due is not None, "nothing is going to happen any more"
            self._agenda.go_on_to(due)


class Played(Virtual):
    """A recorded cluster: the changes of other clients come from the record."""

    def __init__(self, agenda: Agenda) -> None:
        self._recorded = RecordedCluster(agenda, [], scheduler_name="contract")
        super().__init__(agenda, self._recorded)

    def put(self, item: ApiObject) -> None:
        self._play(Change(None, item))

    async def delete(self, kind: type[ApiObject], name: str) -> None:
        self._play(Change(kind(ObjectMeta(name=name, namespace="default")), None))

    def _play(self, change: Change[Any]) -> None:
        self._recorded.play([(self._agenda.now, change)])
        self._agenda.go_on_to(self._agenda.now)


def _webhook(effect: Effect) -> Outcome | None:
    if not isinstance(effect, CallWebhook):
        return None
    return Answered(effect.body) if effect.webhook == ECHOES else Failed("the webhook failed")


def _is(item: ApiObject, name: str) -> bool:
    return item.metadata.name == name


@asynccontextmanager
async def simulated() -> AsyncIterator[Stage]:
    agenda = Agenda()
    yield Virtual(agenda, SimulatedCluster(agenda, start_time=None))


@asynccontextmanager
async def recorded() -> AsyncIterator[Stage]:
    yield Played(Agenda())


class Real:
    nowhere = "127.0.0.1:9"

    def __init__(
        self, cluster: KubeCluster, direct: Writer, client: Client, proxy: Proxy, namespace: str, planner: str
    ) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.planner = planner
        self._direct = direct
        self._client = client
        self._proxy = proxy
        self._finalized: list[str] = []

    async def create_pod(self, name: str, *, gated: bool = False, deleting: bool = False) -> str:
        spec: dict[str, Any] = {
            "schedulerName": "contract",
            "containers": [{"name": "main", "image": "none"}],
            "schedulingGates": [{"name": "wait"}] if gated else [],
        }
        finalizers = ["longshore.dev/test"] if deleting else []
        meta = {"name": name, "finalizers": finalizers}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
        uid = _uid(await self._direct.create(PODS, self.namespace, body))
        if deleting:
            self._finalized.append(name)
            await self._direct.delete(PODS, self.namespace, name)
        return uid

    async def create_map(self, name: str, **data: str) -> str:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
        return _uid(await self._direct.create(CONFIG_MAPS, self.namespace, body))

    async def delete(self, kind: type[ApiObject], name: str) -> None:
        await self._direct.delete(KINDS[kind].resource, self.namespace, name)

    async def found(self, kind: type[T], name: str) -> T | None:
        try:
            body = await self._direct.read(KINDS[kind].resource, self.namespace, name)
        except ApiError as error:
            assert error.status == 404
            return None
        return msgspec.json.decode(body, type=kind)

    async def events(self) -> Sequence[str]:
        body = await self._client.request("GET", EVENTS.path(namespace=self.namespace))
        return [item["note"] for item in json.loads(body)["items"]]

    def lose_answer(self) -> None:
        self._strike(LoseAnswer())

    def lose_request(self) -> None:
        self._strike(DropBefore())

    def _strike(self, fault: Fault) -> None:
        struck = False

        def script(asked: Asked) -> Fault | None:
            nonlocal struck
            if struck or asked.method == "GET":
                return None
            struck = True
            return fault

        self._proxy.script = script

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not condition():
                await asyncio.sleep(0.01)

    async def tidy_up(self) -> None:
        for name in self._finalized:
            await self._direct.patch(PODS, self.namespace, name, {"metadata": {"finalizers": None}})


def _uid(body: bytes) -> str:
    uid: str = json.loads(body)["metadata"]["uid"]
    return uid


@asynccontextmanager
async def real(plane: ControlPlane, namespace: str) -> AsyncIterator[Stage]:
    connection = load(plane.kubeconfig)
    async with (
        Proxy(connection).running() as proxy,
        Client(connection) as client,
        Pool(connection) as direct,
        Pool(proxy.connection) as pool,
        _webhook_server() as port,
        WebhookCalls([Webhook(f"http://127.0.0.1:{port}/{verb}") for verb in ("echo", "fail")]) as webhooks,
        answering(PLAN_BYTES).running() as planner,
    ):
        writer = Writer(pool)
        recorder = EventRecorder(Writer(direct), controller="contract")
        cluster = KubeCluster(client, Operations(writer, webhooks=webhooks), recorder)
        stage = Real(cluster, Writer(direct), client, proxy, namespace, planner.address)
        try:
            yield stage
        finally:
            cluster.close()
            await stage.tidy_up()


@asynccontextmanager
async def _webhook_server() -> AsyncIterator[int]:
    async def echo(request: web.Request) -> web.Response:
        return web.Response(body=await request.read())

    async def fail(_request: web.Request) -> web.Response:
        raise web.HTTPInternalServerError

    application = web.Application()
    application.router.add_post("/echo/filter", echo)
    application.router.add_post("/fail/filter", fail)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
