"""After any events, no pod is lost, in two places, or tried twice at a time."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.engine.queues import ANYTHING, NODE_ADDED, NODE_LABELLED, POD_ADDED, POD_GONE, Scene

from longshore.api import Pod
from longshore.engine.queue.scheduling_queue import Place, QueueEntry
from longshore.framework import ClusterEvent
from longshore.testing import PodBuilder, pod

NAMES = st.sampled_from("abcd")
EVENTS = st.sampled_from([ANYTHING, NODE_ADDED, NODE_LABELLED, POD_ADDED, POD_GONE])
PLUGINS = st.frozensets(st.sampled_from(["Fit", "Claims", "Extender"]), min_size=1)


@st.composite
def pods(draw: st.DrawFn) -> PodBuilder:
    """Return a pod. Names are few, so most are new versions of waiting pods; some are successors or gated."""
    name = draw(NAMES)
    built = pod(name).uid(f"{name}-{draw(st.sampled_from('1112'))}").priority(draw(st.integers(0, 2)))
    built = built.requests(cpu=draw(st.sampled_from("12")))
    hurdle = draw(st.sampled_from(["none", "none", "none", "label", "gate"]))
    if hurdle == "label":
        return built.labels(gate="yes")
    return built.gates("wait") if hurdle == "gate" else built


class QueueLife(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.scene = Scene(max_unschedulable_seconds=20.0)
        self.queue = self.scene.queue
        self.now = 0.0
        # The waiting pods in their newest version, and those that are being tried.
        self.pods: dict[str, Pod] = {}
        self.flights: list[QueueEntry] = []
        self.gate_open = True
        self.scene.plugins.gates["Gate"] = lambda pod: self.gate_open or "gate" not in pod.metadata.labels

    @rule(told=st.lists(pods(), min_size=1, max_size=4))
    def put(self, told: list[PodBuilder]) -> None:
        for one in told:
            self.pods[one.metadata.name] = one
            self.queue.put(one, now=self.now)

    @rule(name=NAMES)
    def withdraw(self, name: str) -> None:
        if name in self.pods:
            self.queue.withdraw(self.pods.pop(name))

    @rule()
    def pop(self) -> None:
        active = [entry for entry in self.queue.waiting() if entry.place is Place.ACTIVE]
        expected = self.queue.has_active
        entry = self.queue.pop()
        assert (entry is not None) == expected
        if entry is None:
            return
        assert entry not in self.flights
        assert entry.pod is self.pods[entry.pod.metadata.name]
        if active:
            assert entry in active
            keys = [self.scene.plugins.sort_key(one.pod, one.timestamp) for one in active]
            assert self.scene.plugins.sort_key(entry.pod, entry.timestamp) == min(keys)
        self.flights.append(entry)

    def landing(self, which: int) -> QueueEntry:
        return self.flights.pop(which % len(self.flights))

    @precondition(lambda self: self.flights)
    @rule(which=st.integers(0, 5), rejectors=PLUGINS, pending=st.booleans())
    def reject(self, which: int, rejectors: frozenset[str], pending: bool) -> None:
        waited_for = rejectors & {"Claims"} if pending else frozenset()
        self.queue.fail(self.landing(which), now=self.now, rejectors=rejectors, pending=waited_for)

    @precondition(lambda self: self.flights)
    @rule(which=st.integers(0, 5))
    def err(self, which: int) -> None:
        self.queue.fail(self.landing(which), now=self.now)

    @precondition(lambda self: self.flights)
    @rule(which=st.integers(0, 5))
    def settle(self, which: int) -> None:
        entry = self.landing(which)
        name = entry.pod.metadata.name
        if self.queue.find(entry.pod) is entry:
            del self.pods[name]
        self.queue.settle(entry)

    @precondition(lambda self: self.flights)
    @rule(which=st.integers(0, 5))
    def bind(self, which: int) -> None:
        self.queue.done_scheduling(self.flights[which % len(self.flights)])

    @rule(event=EVENTS)
    def event(self, event: ClusterEvent) -> None:
        self.queue.event(event, now=self.now)

    @rule(name=NAMES)
    def activate(self, name: str) -> None:
        self.queue.activate([pod for pod in [self.pods.get(name)] if pod is not None], now=self.now)

    @rule(is_open=st.booleans())
    def turn_gate(self, is_open: bool) -> None:
        self.gate_open = is_open

    @rule(seconds=st.sampled_from([0.1, 0.7, 1.0, 5.0, 31.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.queue.flush(now=self.now)
        due = self.queue.next_due
        assert due is None or due > self.now

    @invariant()
    def every_pod_is_in_one_place_in_its_newest_version(self) -> None:
        waiting = {entry.pod.metadata.name: entry for entry in self.queue.waiting()}
        assert len(waiting) == sum(self.queue.counts().values())
        for name, told in self.pods.items():
            entry = self.queue.find(told)
            assert entry is not None
            assert entry.pod is told
            assert (entry in self.flights) == (entry.place is Place.IN_FLIGHT)
            assert (name in waiting) == (entry.place is not Place.IN_FLIGHT)
            assert (entry.cause is not None) == (entry.place in (Place.GATED, Place.UNSCHEDULABLE))
            assert bool(entry.gated_by) == (entry.place is Place.GATED)
        assert waiting.keys() <= self.pods.keys()

    @invariant()
    def no_events_are_kept_without_a_pod_in_flight(self) -> None:
        assert self.flights or not len(self.queue._in_flight)

    def teardown(self) -> None:
        """In the end, every pod that is not gated can be tried."""
        for entry in self.flights:
            self.queue.fail(entry, now=self.now)
        self.gate_open = True
        for name, told in list(self.pods.items()):
            assert isinstance(told, PodBuilder)
            self.pods[name] = free = told.gates()
            self.queue.put(free, now=self.now)
        self.queue.activate(self.pods.values(), now=self.now)
        self.queue.flush(now=self.now + 1000.0)
        assert sorted(self.scene.names()) == sorted(self.pods)


TestQueueLife = QueueLife.TestCase
TestQueueLife.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
