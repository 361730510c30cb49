"""The engine and a slow, plain scheduler that get the same events: their decisions must agree."""

from tests.engine.reference import Reference

from longshore.api import Change, Node, Pod
from longshore.engine import Bind, Done, Engine, RecordEvent, Succeeded
from longshore.testing import PodBuilder, pod


class Contest:
    """The engine and the reference scheduler, which get the same events."""

    def __init__(self, reference: Reference | None = None) -> None:
        self.engine = Engine()
        self.reference = reference or Reference()
        self.waiting: dict[str, Pod] = {}
        self.now = 0.0
        self.decisions = 0

    def tell(self, old: Node | Pod | None, new: Node | Pod | None) -> None:
        self.engine.receive(Change(old, new), now=self.now)

    def decide(self) -> None:
        """Let the engine try its pods, and compare each attempt with the reference."""
        self.now += 20.0
        for request in self.engine.advance(now=self.now):
            match request.effect:
                case Bind(name=name, node=chosen):
                    tried = self.waiting.pop(f"default/{name}")
                    best = self.reference.best(tried)
                    assert chosen in best, f"{name} went to {chosen}, not to one of {best}"
                    self.reference.pods[tried.key] = (tried, chosen)
                    self.engine.receive(Done(request.id, Succeeded()), now=self.now)
                case RecordEvent(reason="FailedScheduling", name=name, note=note):
                    tried = self.waiting[f"default/{name}"]
                    assert self.reference.best(tried) == set()
                    assert note.startswith(self.reference.message(tried))
                case _:
                    continue
            self.decisions += 1

    # Events.

    def put_node(self, new: Node) -> None:
        name = new.metadata.name
        self.tell(self.reference.nodes.get(name), new)
        self.reference.nodes[name] = new

    def remove_node(self, name: str) -> None:
        old = self.reference.nodes.pop(name, None)
        if old is not None:
            self.tell(old, None)

    def create(self, new: PodBuilder) -> None:
        self.waiting[new.key] = new
        self.tell(None, new)

    def confirm(self, number: int) -> None:
        """The watch shows the node of a pod."""
        if self.reference.pods:
            placed, name = self.some_pod(number)
            self.tell(placed, placed.on(name))

    def delete(self, number: int) -> None:
        if self.reference.pods:
            placed, name = self.some_pod(number)
            del self.reference.pods[placed.key]
            self.tell(placed.on(name), None)

    def terminate(self, number: int) -> None:
        if self.reference.pods:
            placed, name = self.some_pod(number)
            self.reference.pods[placed.key] = (placed.deleting(), name)
            self.tell(placed.on(name), placed.deleting().on(name))

    def relabel(self, number: int, **labels: str) -> None:
        if self.reference.pods:
            placed, name = self.some_pod(number)
            self.reference.pods[placed.key] = (placed.labels(**labels), name)
            self.tell(placed.on(name), placed.labels(**labels).on(name))

    def some_pod(self, number: int) -> tuple[PodBuilder, str]:
        placed, name = list(self.reference.pods.values())[number % len(self.reference.pods)]
        assert isinstance(placed, PodBuilder)
        return placed, name


def named(shape: PodBuilder, number: int, copy: int = 0) -> PodBuilder:
    """Return another pod of the same shape."""
    other = pod(f"p{number}-{copy}")
    return shape._with_metadata(name=other.metadata.name, uid=other.metadata.uid)
