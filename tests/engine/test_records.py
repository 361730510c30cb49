"""Records of decisions: the latest ones, by pod, with the scores that the plugins gave."""

import hypothesis.strategies as st
from hypothesis import given, settings
from msgspec.structs import replace
from tests.engine.stage import room
from tests.engine.test_webhooks import RANK, scripted

from longshore.api import Change, Node, Pod
from longshore.cluster import PodInfo
from longshore.engine import Bind, Done, Engine, Failed, Request, Succeeded
from longshore.engine.answers.explanation import Explanation, explain
from longshore.engine.answers.records import Decision, Records, RefusalCount
from longshore.sim import Simulation
from longshore.testing import PodBuilder, pod
from longshore.testing.strategies import choosy_pods, varied_nodes

NAMES = ("n1", "n2", "n3", "n4", "n5", "n6")


class Pair:
    """An engine that decides, and a second one with the same events that explains each pod before."""

    def __init__(self) -> None:
        self.engine, self.twin = Engine(), Engine()
        self.now = 0.0

    def tell(self, old: Node | Pod | None, new: Node | Pod | None) -> None:
        for engine in (self.engine, self.twin):
            engine.receive(Change(old, new), now=self.now)

    def place(self, each: PodBuilder) -> tuple[Explanation, Decision]:
        """Return the explanation right before the pod is tried, and the record of its attempt."""
        self.now += 1.0
        said = explain(self.twin.chooser("longshore"), PodInfo.of(each))
        self.engine.receive(Change(None, each), now=self.now)
        for request in self.engine.advance(now=self.now, max_cycles=1):
            if isinstance(request.effect, Bind):
                self.engine.receive(Done(request.id, Succeeded()), now=self.now)
                self.tell(each, each.on(request.effect.node))
        decision = self.engine.records.of("default", each.metadata.name)[0]
        if not decision.node:
            self.engine.receive(Change(each, None), now=self.now)
        return said, decision


@settings(max_examples=60, deadline=None)
@given(
    nodes=st.tuples(*(varied_nodes(name=name) for name in NAMES)),
    shapes=st.lists(choosy_pods(name="pod"), min_size=1, max_size=3),
    order=st.lists(st.integers(0, 2), min_size=4, max_size=16),
)
def test_a_record_has_the_scores_that_the_plugins_gave_right_before_the_decision(
    nodes: tuple[Node, ...], shapes: list[PodBuilder], order: list[int]
) -> None:
    pair = Pair()
    for each in nodes:
        pair.tell(None, each)
    for number, which in enumerate(order):
        said, decision = pair.place(_named(shapes[which % len(shapes)].priority(0), f"pod-{number}"))
        assert (decision.time, decision.uid) == (pair.now, f"pod-{number}")
        assert decision.feasible == len(said.feasible)
        if not said.feasible:
            assert decision.node == ""
            continue
        if len(said.feasible) > 1:
            assert decision.scores == said.scores[decision.node]
            assert decision.total == said.totals[decision.node] == max(said.totals.values())
            assert decision.ties == list(said.totals.values()).count(decision.total)
        else:
            assert (decision.node, decision.scores) == (said.feasible[0], {})


def _named(each: PodBuilder, name: str) -> PodBuilder:
    return replace(each, metadata=replace(each.metadata, name=name, uid=name))


def test_a_node_that_changed_since_does_not_change_the_record() -> None:
    pair = Pair()
    first, second = room("n1").taint("spot", effect="PreferNoSchedule"), room("n2")
    pair.tell(None, first)
    pair.tell(None, second)
    said, decision = pair.place(pod("web").requests(cpu="1"))
    pair.tell(second, second.allocatable(cpu="64").taint("spot", effect="PreferNoSchedule"))
    pair.place(pod("later").requests(cpu="1"))
    assert decision.node == "n2"
    assert pair.engine.records.of("default", "web")[0].scores == decision.scores == said.scores["n2"]


def test_a_pod_that_fits_nowhere_has_a_record_with_the_nodes_by_plugin_and_reason() -> None:
    simulation = Simulation()
    small, tainted = room("n1", cpu="1"), room("n2").taint("dedicated", effect="NoSchedule")
    simulation.create(small, room("n3", cpu="1"), tainted, pod("big").requests(cpu="2"))
    simulation.run(until=0.5)
    (decision,) = simulation.engine.records.of("default", "big")
    assert decision.refused == (
        RefusalCount("TaintToleration", "node(s) had untolerated taint(s)", 1),
        RefusalCount("NodeResourcesFit", "Insufficient cpu", 2),
    )
    assert decision.message.startswith(
        "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insuff"
    )
    assert (decision.node, decision.nodes, decision.scores) == ("", 3, {})


def test_the_victims_of_a_preemption_are_in_the_record() -> None:
    simulation = Simulation()
    simulation.create(room("n1"), pod("lesser").requests(cpu="3"))
    simulation.run(until=5.0)
    simulation.create(pod("urgent").requests(cpu="3").priority(10))
    simulation.run(until=5.5)
    decision = simulation.engine.records.of("default", "urgent")[-1]
    assert (decision.nominated_node, decision.victims) == ("n1", ("default/lesser",))


def test_scores_of_extenders_are_separate_from_the_scores_of_plugins() -> None:
    script = scripted(RANK)  # of weight 2
    request, _, _ = script.asked()
    script.answer(request, [{"Host": "n2", "Score": 3}])
    (decision,) = script.engine.records.of("default", "web")
    assert (decision.node, decision.extenders) == ("n2", 60)
    assert decision.total == sum(decision.scores.values()) + 60


def test_every_attempt_of_a_pod_has_a_record_the_newest_first() -> None:
    simulation = Simulation()
    simulation.create(room("n1", cpu="1"), pod("web").requests(cpu="2"))
    simulation.create(room("n2"), at=30.0)
    simulation.run()
    bound, refused = simulation.engine.records.of("default", "web")
    assert (bound.node, bound.time) == ("n2", 30.0)
    assert (refused.node, refused.time) == ("", 0.0)


def test_a_bind_that_failed_has_a_record_after_the_decision() -> None:
    engine = Engine()
    engine.receive(Change(None, room("n1")), now=0.0)
    engine.receive(Change(None, pod("web")), now=0.0)
    (request,) = engine.advance(now=0.0)
    assert isinstance(request, Request)
    engine.receive(Done(request.id, Failed("the API server was not reached")), now=1.0)
    failed, decided = engine.records.of("default", "web")
    assert failed.node == "n1"
    assert failed.message == 'running Bind plugin "DefaultBinder": the API server was not reached'
    assert (decided.node, decided.message) == ("n1", "")


def test_only_the_latest_are_kept() -> None:
    records = Records(lambda: 0.0, most=3)
    profile = Engine().profiles["longshore"]
    for number in range(5):
        records.failed(pod(f"pod-{number}"), profile, "no")
    assert len(records) == 3
    assert [len(records.of("default", f"pod-{number}")) for number in range(5)] == [0, 0, 1, 1, 1]
