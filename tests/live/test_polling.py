"""Passes over a cluster that changes between them, with an API server that accepts everything."""

import json
from typing import cast

import msgspec
from tests.engine.stage import room

from longshore.api.meta import ApiObject
from longshore.engine import Engine
from longshore.kube import Client, EventRecorder, Writer
from longshore.kube.operations import Operations
from longshore.kube.polling import PolledCluster
from longshore.kube.pool import Response
from longshore.live import Follower
from longshore.pin.labels import pin_key
from longshore.pin.profile import StaticOptions, static_configuration, static_plugins
from longshore.testing import NodeBuilder, pod

WEB = pod("web-0").scheduler("static").requests(cpu="3")
KEY = pin_key("static", "default", "web-0")


class Server:
    """It accepts every write, and notes the binds: the pod's UID and its node."""

    def __init__(self) -> None:
        self.binds: list[tuple[str, str]] = []

    async def send(
        self, method: str, target: str, body: bytes = b"", *, content_type: str = "", timeout: float = 0.0
    ) -> Response:
        if target.endswith("/binding"):
            sent = json.loads(body)
            self.binds.append((sent["metadata"]["uid"], sent["target"]["name"]))
        return Response(201, b"{}", None)


async def binds_after_each(*looks: tuple[ApiObject, ...]) -> list[tuple[str, str]]:
    """Return the binds of passes over these states of the cluster."""
    server, no_client = Server(), cast(Client, None)
    writer = Writer(server)
    cluster = PolledCluster(no_client, Operations(writer), EventRecorder(writer, controller="static"))
    options = StaticOptions()
    plugins = static_plugins(options, on_legacy=lambda _key, _node: None)
    follower = Follower(Engine(static_configuration("static", options), plugins=plugins), cluster)
    follower.watch()
    for version, objects in enumerate(looks):
        cluster.compare(at(version, each) for each in objects)
        await follower.settle()
    return server.binds


def at(version: int, item: ApiObject) -> ApiObject:
    """Any number of changes may occur between two passes."""
    metadata = msgspec.structs.replace(item.metadata, resource_version=str(version))
    return msgspec.structs.replace(item, metadata=metadata)


def labeled(name: str) -> NodeBuilder:
    return room(name, "4").labels(**{KEY: ""})


async def test_a_pod_is_bound_once_its_node_is_labeled() -> None:
    bound = await binds_after_each((room("n1"), WEB), (labeled("n1"), WEB))
    assert bound == [(WEB.metadata.uid, "n1")]


async def test_a_pod_that_has_come_back_between_two_passes_is_another_pod() -> None:
    """The new pod is bound, and the room of the old pod is free again."""
    first, second = WEB.uid("first"), WEB.uid("second")
    bound = await binds_after_each((labeled("n1"), first), (labeled("n1"), second))
    assert bound == [("first", "n1"), ("second", "n1")]


async def test_a_pod_that_has_come_back_while_it_waited_is_bound_under_its_new_uid() -> None:
    first, second = WEB.uid("first"), WEB.uid("second")
    bound = await binds_after_each((room("n1"), first), (labeled("n1"), second))
    assert bound == [("second", "n1")]
