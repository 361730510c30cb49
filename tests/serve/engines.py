"""An engine with an observer, and the values of its metrics."""

from collections.abc import Mapping

from prometheus_client import Metric

from longshore.api import Change, Node, Pod
from longshore.engine import Done, Engine, Instruction, Request, Succeeded
from longshore.serve import Metrics, registry_of
from longshore.testing import node


class Observed:
    """Time changes only with `now`; the clock that measures durations advances by `tick` at each reading."""

    def __init__(self, engine: Engine, *, tick: float = 0.0) -> None:
        self.engine = engine
        self.now = 0.0
        self._looks = 0
        self._tick = tick
        self.metrics = Metrics(engine, clock=self._clock)
        engine.observe(self.metrics)
        self.registry = registry_of(self.metrics)

    def _clock(self) -> float:
        self._looks += 1
        return self._looks * self._tick

    def add(self, *objects: Pod | Node) -> None:
        for added in objects:
            self.engine.receive(Change(None, added), now=self.now)

    def advance(self) -> list[Instruction]:
        return self.engine.advance(now=self.now)

    def bind_all(self) -> None:
        """Answer every effect with success."""
        for request in self.advance():
            if isinstance(request, Request):
                self.engine.receive(Done(request.id, Succeeded()), now=self.now)

    def value(self, sample: str, /, **labels: str) -> float | None:
        return self.registry.get_sample_value(sample, labels)

    def families(self) -> Mapping[str, Metric]:
        return {family.name: family for family in self.registry.collect()}


def roomy(name: str = "node-1") -> Node:
    return node(name).allocatable(cpu="8", memory="32Gi", pods="110")
