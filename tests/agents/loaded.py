"""Calls agents for nodes with a known load, all at once and one by one; the results must be the same."""

from collections.abc import Callable, Mapping
from typing import Any

from longshore.api import Change, Node, Pod
from longshore.cluster import PodInfo
from longshore.engine import Engine, Measurements
from longshore.framework import CycleState

Make = Callable[..., Any]
Load = Mapping[str, Mapping[str, float]]


class Loaded:
    """An engine with nodes, the pods on them, and the measurements of time 0."""

    def __init__(self, *objects: Node | Pod, load: Load | None = None) -> None:
        self.engine = Engine(epoch=1000.0)
        self.tell(*(each for each in objects if isinstance(each, Node)))
        self.tell(*(each for each in objects if isinstance(each, Pod)))
        self.measure(load or {}, at=0.0)

    def tell(self, *objects: Node | Pod) -> None:
        for each in objects:
            self.engine.receive(Change(None, each), now=0.0)

    def measure(self, load: Load, *, at: float) -> None:
        timed = {name: {node: (value, 1000 + at) for node, value in of.items()} for name, of in load.items()}
        self.engine.receive(Measurements(timed), now=at)

    def agent(self, make: Make, **args: object) -> Any:
        return make(args, handle=self.engine.handle(self.engine.scheduler_name))

    def scores(self, agent: Any, pod: Pod) -> dict[str, int]:
        cluster = self.engine.cluster
        info, state = PodInfo.of(pod), CycleState()
        nodes = cluster.all_nodes()
        answer = agent.score(state, info, nodes)
        together = [answer] * len(nodes) if isinstance(answer, int) else answer.tolist()
        rows = nodes.numbers.tolist()
        one_by_one = [agent.score(state, info, cluster.one_node(row)) for row in rows]
        assert [int(each) for each in one_by_one] == together
        return dict(zip(nodes.names, together, strict=True))
