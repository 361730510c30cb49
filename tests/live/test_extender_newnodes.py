"""Nodes that appear while kube-scheduler and the extender run. Each of the two has its own watch."""

import http.client
import json
from collections.abc import Iterator

import pytest
from tests.live.stock import Extender, World, among, loaded
from tests.serve.extenders import about_names

from longshore.serve.extender.refusals import UNKNOWN_NODE
from longshore.testing import pod

pytestmark = pytest.mark.control_plane

# A busy machine may take longer to create a node than the extender waits.
ATTEMPTS = 5


@pytest.fixture(scope="module")
def world(stock_cluster: World) -> Iterator[World]:
    with stock_cluster.having(loaded("there")) as made:
        yield made


@pytest.fixture(scope="module")
def extender(world: World) -> Iterator[Extender]:
    with world.extender("safe") as found:
        yield found
        assert found.stop() == 0


def test_pods_go_to_new_nodes_at_once(world: World, extender: Extender) -> None:
    new = [loaded(f"new-{number}", (6000, 400), (12, 1)) for number in range(20)]
    with world.scheduler(extender.entry("safe-overload", filters=True)) as scheduler:
        waiting = [among(world.named("web").requests(cpu="500m"), each.metadata.name) for each in new]
        scheduler.submit(*waiting)
        assert [scheduler.fate(web).node for web in waiting] == [""] * len(waiting)
        world.api.create(*new)
        # Sent away, one would wait for five minutes, or for the change of another node.
        assert [scheduler.lands(web, within=10) for web in waiting] == [each.metadata.name for each in new]
    told = [world.api.events(world.api.get(web)["metadata"]["uid"]) for web in waiting]
    assert UNKNOWN_NODE not in str(told)


def test_a_question_about_a_node_waits_a_moment_for_the_watch(world: World, extender: Extender) -> None:
    assert any(_left_if_created_after_the_question(world, extender, f"soon-{n}") for n in range(ATTEMPTS))


def _left_if_created_after_the_question(world: World, extender: Extender, name: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", extender.port, timeout=10)
    body = json.dumps(about_names(pod("web"), [name])).encode()
    connection.request("POST", "/scheduler/predicates/safe-overload", body)
    world.api.create(loaded(name))
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return bool(answer["NodeNames"] == [name])
