"""Passes over a cluster that changes between them, with an API server that accepts every write."""

import json
from collections.abc import Callable

import msgspec
from tests.engine.stage import room

from longshore.api.meta import ApiObject
from longshore.engine import Engine
from longshore.engine.events import Done
from longshore.kube import EventRecorder, Writer
from longshore.kube.pool import Response
from longshore.live.effects import Performer
from longshore.live.polling import Passes
from longshore.live.webhook_calls import WebhookCalls
from longshore.pin.labels import pin_key
from longshore.pin.profile import StaticOptions, static_configuration, static_plugins
from longshore.testing import NodeBuilder, pod

WEB = pod("web-0").scheduler("static").requests(cpu="3")
KEY = pin_key("static", "default", "web-0")


class Server:
    """Accepts every write, and keeps the binds: the pod's UID and its node."""

    def __init__(self) -> None:
        self.binds: list[tuple[str, str]] = []

    async def send(
        self, method: str, target: str, body: bytes = b"", *, content_type: str = "", timeout: float = 0.0
    ) -> Response:
        if target.endswith("/binding"):
            sent = json.loads(body)
            self.binds.append((sent["metadata"]["uid"], sent["target"]["name"]))
        return Response(201, b"{}", None)


def passes(server: Server) -> Passes:
    options = StaticOptions()
    plugins = static_plugins(options, on_legacy=lambda _key, _node: None)
    engine = Engine(static_configuration("static", options), plugins=plugins)

    def performer(on_done: Callable[[Done], None], on_room: Callable[[], None]) -> Performer:
        writer = Writer(server)
        recorder = EventRecorder(writer, controller="static")
        return Performer(writer, recorder, WebhookCalls(()), on_done=on_done, on_room=on_room)

    return Passes(engine, performer)


async def one_after_the_other(*looks: tuple[ApiObject, ...]) -> list[tuple[str, str]]:
    """Return the binds of passes over these states of the cluster."""
    server = Server()
    making = passes(server)
    for version, objects in enumerate(looks):
        await making.make([at(version, each) for each in objects], finish_within=5.0)
    return server.binds


def at(version: int, thing: ApiObject) -> ApiObject:
    """Any number of changes may occur between two passes."""
    metadata = msgspec.structs.replace(thing.metadata, resource_version=str(version))
    return msgspec.structs.replace(thing, metadata=metadata)


def labeled(name: str) -> NodeBuilder:
    return room(name, "4").labels(**{KEY: ""})


async def test_a_pod_is_bound_once_its_node_is_labeled() -> None:
    bound = await one_after_the_other((room("n1"), WEB), (labeled("n1"), WEB))
    assert bound == [(WEB.metadata.uid, "n1")]


async def test_a_pod_that_has_come_back_between_two_passes_is_another_pod() -> None:
    """The new pod is bound, and the room of the old pod is free again."""
    first, second = WEB.uid("first"), WEB.uid("second")
    bound = await one_after_the_other((labeled("n1"), first), (labeled("n1"), second))
    assert bound == [("first", "n1"), ("second", "n1")]


async def test_a_pod_that_has_come_back_while_it_waited_is_bound_under_its_new_uid() -> None:
    first, second = WEB.uid("first"), WEB.uid("second")
    bound = await one_after_the_other((room("n1"), first), (labeled("n1"), second))
    assert bound == [("second", "n1")]
