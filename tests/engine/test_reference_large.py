"""Decisions on more nodes, with many events at a time and nominated pods, equal those of a plain scheduler.

Between two decisions about pods of one shape few rows change, which are then looked at one by one, or so many
that all are looked at together.
"""

from dataclasses import dataclass, field
from random import Random

import hypothesis.strategies as st
from hypothesis import given, settings
from tests.engine.contest import Contest, named
from tests.engine.reference import Reference

from longshore.api import Node, Pod
from longshore.testing import NodeBuilder, PodBuilder, node, pod
from longshore.testing.strategies import HOSTNAME, ZONE, ZONES

SHAPES = (
    pod("small").requests(cpu="500m", memory="512Mi").labels(app="web"),
    pod("large").requests(cpu="3", memory="6Gi").priority(10),
    pod("picky").requests(cpu="1").node_selector(disk="ssd").tolerate("dedicated"),
    pod("wishful").requests(cpu="1").node_affinity(ZONE, "In", ZONES[0], preferred=50).priority(5),
    pod("port").requests(memory="1Gi").host_port(80).priority(5),
    pod("spread").requests(cpu="250m").labels(app="web").spread(ZONE, max_skew=2, app="web"),
    pod("alone").requests(cpu="250m").labels(app="db").anti_affinity_to(HOSTNAME, app="db"),
)


@dataclass
class Promising(Reference):
    """The reference scheduler with nominated pods."""

    # By key: the pod, and the node that it is nominated to.
    nominated: dict[str, tuple[Pod, str]] = field(default_factory=dict)
    by_node: dict[str, list[Pod]] = field(default_factory=dict)

    def on(self, node: Node) -> list[Pod]:
        return self.by_node.get(node.metadata.name, [])

    def best(self, pod: Pod) -> set[str]:
        self._look()
        own = self.nodes.get(pod.status.nominated_node_name)
        if own is not None and not self.reasons(pod, own):
            return {own.metadata.name}
        return super().best(pod)

    def message(self, pod: Pod) -> str:
        self._look()
        return super().message(pod)

    def reasons(self, pod: Pod, node: Node) -> list[str]:
        name = node.metadata.name
        beside = [
            other
            for key, (other, promised) in self.nominated.items()
            if promised == name
            and other.spec.priority >= pod.spec.priority
            and key != pod.key
            and key not in self.pods
        ]
        if beside:
            crowded = Promising(self.nodes, {**self.pods, **{other.key: (other, name) for other in beside}})
            crowded.by_node = {**self.by_node, name: [*self.on(node), *beside]}
            if found := crowded.reasons(pod, node):
                return found
        return super().reasons(pod, node)

    def _look(self) -> None:
        self.by_node = {}
        for placed, name in self.pods.values():
            self.by_node.setdefault(name, []).append(placed)


class LargeContest(Contest):
    reference: Promising

    def __init__(self, random: Random) -> None:
        super().__init__(Promising())
        self.random = random
        self.shapes = random.sample(SHAPES, 3)
        self.names = [f"n{number:02d}" for number in range(random.randint(30, 60))]
        for name in self.names:
            self.put_node(self.some_node(name))

    def some_node(self, name: str) -> NodeBuilder:
        choice = self.random.choice
        built = node(name).allocatable(cpu=choice(["1", "2", "4"]), memory=choice(["2Gi", "8Gi"]))
        built = built.labels(**{ZONE: choice(ZONES)}, disk=choice(["ssd", "hdd"]))
        effect = choice([None, None, None, "PreferNoSchedule", "NoSchedule"])
        return built if effect is None else built.taint("dedicated", effect=effect)

    def some_shape(self) -> PodBuilder:
        return self.random.choice(self.shapes).never_preempting()

    def wanted(self) -> str:
        """Return a node that the next pod of some shape would get."""
        return min(self.reference.best(self.some_shape()), default="")

    def happen(self, number: int) -> None:
        """Send a few events, or a burst of them, about different nodes."""
        many = self.random.choice([1, 3, len(self.names)])
        for copy, name in enumerate(self.random.sample(self.names, many)):
            match self.random.randrange(7):
                case 0 | 1:
                    self.put_foreign(named(self.some_shape(), number, copy), name)
                case 2:
                    self.delete(self.random.randrange(1000))
                case 3:
                    self.put_node(self.some_node(name))
                case 4:
                    self.confirm(self.random.randrange(1000))
                case 5:
                    self.promise(named(self.some_shape(), number, copy), self.wanted() or name)
                case 6:
                    self.break_promise(name)

    def put_foreign(self, placed: PodBuilder, name: str) -> None:
        placed = placed.scheduler("default-scheduler")
        self.reference.pods[placed.key] = (placed, name)
        self.tell(None, placed.on(name))

    def promise(self, nominee: PodBuilder, name: str) -> None:
        """Nominate a gated pod."""
        nominee = nominee.priority(self.random.choice([0, 5, 10])).gates("wait").nominated(name)
        self.reference.nominated[nominee.key] = (nominee, name)
        self.tell(None, nominee)

    def break_promise(self, name: str) -> None:
        """Delete a nominated pod, nominate it to another node, or remove its nomination."""
        if not self.reference.nominated:
            return
        key = self.random.choice(list(self.reference.nominated))
        nominee, _ = self.reference.nominated.pop(key)
        assert isinstance(nominee, PodBuilder)
        waited = self.waiting.pop(key, None) is not None
        match self.random.randrange(3):
            case 0:
                self.tell(nominee, None)
                return
            case 1:
                name = ""
            case 2:
                self.reference.nominated[key] = (nominee.nominated(name), name)
        self.tell(nominee, nominee.nominated(name))
        if waited:
            self.waiting[key] = nominee.nominated(name)

    def ask(self, number: int) -> None:
        for copy in range(self.random.randint(1, 4)):
            new = named(self.some_shape(), number, 1000 + copy)
            if not self.random.randrange(4):
                new = new.nominated(name := self.random.choice(self.names))
                self.reference.nominated[new.key] = (new, name)
            self.create(new)

    def decide(self) -> None:
        super().decide()
        for key in self.reference.pods:
            self.reference.nominated.pop(key, None)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32))
def test_every_decision_on_many_nodes_is_that_of_a_plain_scheduler(seed: int) -> None:
    contest = LargeContest(Random(seed))
    for number in range(10):
        contest.happen(number)
        contest.ask(number)
        contest.decide()
    assert contest.decisions
