"""A filter that says Pending: it waits for something that preemption does not help with."""

from collections.abc import Iterable

import numpy as np
import pytest
from tests.engine.stage import Stage, room

from longshore.api import Change
from longshore.cluster import Nodes, OneNode, PodInfo
from longshore.engine.answers.explanation import explain
from longshore.framework import Action, CycleState, Rejection, Resource, Status, WakeOn
from longshore.testing import pod

A = pod("a").requests(cpu="1")


class NotYet:
    """Waits for a label of the node, in one of the two forms of a filter."""

    name = "NotYet"
    wakes_on = (WakeOn(Resource.NODE, Action.UPDATE_NODE_LABEL),)

    def filter_node(self, state: CycleState, pod: PodInfo, node: OneNode) -> Status | None:
        return None if "ready" in node.labels else Status.pending("node(s) were not ready yet")


class NotYetAtOnce:
    name = "NotYet"
    wakes_on = NotYet.wakes_on

    def filter(self, state: CycleState, pod: PodInfo, nodes: Nodes) -> Iterable[Rejection]:
        unready = np.array(["ready" not in nodes.cluster.one_node(row).labels for row in nodes.numbers])
        yield Rejection("node(s) were not ready yet", unready, pending=True)


not_yet = pytest.mark.parametrize("plugin", [NotYet, NotYetAtOnce])


@not_yet
def test_a_pending_pod_is_tried_at_once_when_its_event_happens(
    plugin: type,
) -> None:
    stage = Stage(plugin())
    stage.create(room("n1"), A)
    stage.run(until=0.1)
    entry = stage.engine.queue.find(stage.pod("a"))
    assert entry is not None
    assert entry.rejectors == {"NotYet"}
    assert entry.pending == {"NotYet"}
    stage.engine.receive(Change(room("n1"), room("n1").labels(ready="yes")), now=0.2)
    # A pod that was rejected otherwise would be in backoff.
    assert stage.place("a") == "active"


@not_yet
def test_preemption_does_not_help_on_a_node_that_a_filter_calls_pending(plugin: type) -> None:
    stage = Stage(plugin(), defaults=True)
    stage.create(room("n1"), pod("low").on("n1").requests(cpu="1"), A.priority(9))
    stage.run(until=0.5)
    assert stage.message("a").startswith("0/1 nodes are available: 1 node(s) were not ready yet. ")
    assert "1 Preemption is not helpful for scheduling" in stage.message("a")


@not_yet
def test_an_explanation_says_pending(plugin: type) -> None:
    stage = Stage(plugin())
    stage.create(room("n1"), room("n2").labels(ready="yes"))
    stage.run(until=0.5)
    found = explain(stage.engine.chooser("longshore"), PodInfo.of(A))
    assert {name: why.code for name, why in found.rejected.items()} == {"n1": "Pending"}
