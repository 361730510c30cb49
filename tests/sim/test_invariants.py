"""Properties that hold in all random scenarios with latencies and faults."""

from collections.abc import Callable

import hypothesis.strategies as st
from hypothesis import given, settings

from longshore.api import Pod
from longshore.cluster import ClusterState, PodInfo
from longshore.engine import Bind, Done, Engine, Event, Instruction, Request, Succeeded
from longshore.engine.decision.chooser import Chooser, Placement
from longshore.sim import Faults, SimulatedCluster, Simulation
from longshore.testing import NodeBuilder, PodBuilder, node, pod
from longshore.testing.strategies import pods

# A node name always has the same size, so that only our binds could overfill the node.
NODES = [
    node("n1").allocatable(cpu="2", memory="1Gi", pods="3"),
    node("n2").allocatable(cpu="1", memory="2Gi", pods="4"),
    node("n3").allocatable(cpu="3900m", memory="4Gi"),
]
END_OF_FAULTS = 30.0
RESOURCES = ("pods", "cpu", "memory", "example.com/gpu")

# Steps take a simulation, a time and a unique number.
Happening = Callable[[Simulation, float, int], None]


class CheckedEngine(Engine):
    """A simulation that fails on a bind of a pod that is being bound or is bound already."""

    def __init__(self, check: Callable[[], None]) -> None:
        super().__init__()
        self._check = check
        self._under_way: dict[int, str] = {}
        self._bound: set[str] = set()

    def receive(self, event: Event, *, now: float) -> None:
        if isinstance(event, Done):
            uid = self._under_way.pop(event.id, None)
            if uid is not None and isinstance(event.outcome, Succeeded):
                self._bound.add(uid)
        super().receive(event, now=now)

    def advance(self, *, now: float, max_cycles: int | None = None) -> list[Instruction]:
        self._check()
        requests = super().advance(now=now, max_cycles=max_cycles)
        for request in requests:
            if isinstance(request, Request) and isinstance(request.effect, Bind):
                assert request.effect.uid not in {*self._under_way.values(), *self._bound}, "bound twice"
                self._under_way[request.id] = request.effect.uid
        return requests


@st.composite
def happenings(draw: st.DrawFn) -> Happening:
    some_pod: PodBuilder = draw(pods())
    some_node: NodeBuilder = draw(st.sampled_from(NODES))
    name = draw(st.sampled_from("abcdefgh"))
    kind = draw(
        st.sampled_from(
            ["pod"] * 5 + ["node"] * 2 + ["delete pod", "delete node", "end", "terminate", "label"]
        )
    )

    def happen(simulation: Simulation, at: float, number: int) -> None:
        def existing() -> PodBuilder | None:
            found = simulation.cluster.pods.get(f"default/{name}")
            assert found is None or isinstance(found, PodBuilder)
            return found

        match kind:
            case "pod":
                simulation.delete(some_pod, at=at)
                simulation.create(some_pod.uid(f"uid-{number}"), at=at)
            case "node":
                simulation.create(some_node, at=at)
            case "delete node":
                simulation.delete(some_node, at=at)
            case "delete pod":
                simulation.delete(some_pod, at=at)
            case _:
                simulation.run(until=at)
                current = existing()
                if current is None:
                    return
                changed = {
                    "end": current.phase("Failed"),
                    "terminate": current.deleting(),
                    "label": current.labels(changed="yes"),
                }[kind]
                simulation.update(changed, at=at)

    return happen


@st.composite
def crowds(draw: st.DrawFn) -> list[tuple[float, PodBuilder]]:
    """More small pods than fit, shortly after each other."""
    sizes = draw(st.lists(st.sampled_from(["200m", "500m", "1"]), max_size=12))
    gap = draw(st.sampled_from([0.0, 0.1]))
    return [(gap * n, pod(f"crowd-{n}").requests(cpu=size)) for n, size in enumerate(sizes)]


def assert_not_overcommitted(cluster: SimulatedCluster) -> None:
    for each in NODES:
        tenants = [
            p for p in cluster.pods.values() if p.spec.node_name == each.metadata.name and not p.terminal
        ]
        allocatable = PodInfo.of(node_sized_pod(each)).requests
        for resource in RESOURCES:
            used = sum(PodInfo.of(p).requests.get(resource, 0) for p in tenants)
            room = (
                int(each.status.allocatable["pods"]) if resource == "pods" else allocatable.get(resource, 0)
            )
            assert used <= room, f"{each.metadata.name} holds {used} of {room} {resource}"


def node_sized_pod(sized: NodeBuilder) -> Pod:
    """Return a pod with requests for the whole node. Other code than that for nodes sums them up."""
    return PodBuilder(metadata=sized.metadata).pod_requests(**sized.status.allocatable)


def rebuilt(cluster: SimulatedCluster) -> ClusterState:
    state = ClusterState()
    for each in cluster.nodes.values():
        state.add_node(each)
    for each_pod in cluster.pods.values():
        state.add_pod(each_pod)
    return state


def by_name(state: ClusterState) -> dict[str, list[int]]:
    numbers = {}
    for each in NODES:
        row = state.row(each.metadata.name)
        if row is not None:
            columns = [c for r in RESOURCES if (c := state.column(r)) is not None]
            cells = [
                *state.requested[columns, row],
                *state.allocatable[columns, row],
                *state.nonzero_requested[:, row],
            ]
            numbers[each.metadata.name] = [int(cell) for cell in cells]
    return numbers


LATENCY = st.sampled_from([0.0, 0.01, 0.3])
CHANCE = st.sampled_from([0.0, 0.1, 0.33])


@st.composite
def simulations(draw: st.DrawFn) -> Simulation:
    simulation = Simulation(
        CheckedEngine(lambda: assert_not_overcommitted(simulation.cluster)),
        bind_latency=draw(LATENCY),
        answer_latency=draw(LATENCY),
        watch_latency=draw(LATENCY),
        run_time=draw(st.sampled_from([None, 3.0])),
        faults=Faults(draw(CHANCE), draw(CHANCE), draw(CHANCE), until=END_OF_FAULTS),
        seed=draw(st.integers(0, 1000)),
    )
    return simulation


WAIT = st.sampled_from([0.0, 0.005, 0.1, 1.0, 5.0])


@settings(max_examples=150, deadline=None)
@given(simulations(), crowds(), st.lists(st.tuples(WAIT, happenings()), max_size=30))
def test_room_is_respected_nothing_is_bound_twice_and_nothing_is_stranded(
    simulation: Simulation, crowd: list[tuple[float, PodBuilder]], history: list[tuple[float, Happening]]
) -> None:
    simulation.create(*NODES[:2])
    for at, member in crowd:
        simulation.create(member, at=at)
        simulation.update(member.labels(changed="yes"), at=at + 0.005)
    now = 0.0
    for number, (wait, happen) in enumerate(history):
        now += wait
        happen(simulation, now, number)
    simulation.run()
    assert_not_overcommitted(simulation.cluster)

    # At rest the engine's state equals the cluster's, and no waiting pod fits a node.
    fresh = rebuilt(simulation.cluster)
    assert by_name(simulation.engine.cluster) == by_name(fresh)
    chooser = Chooser(simulation.engine.profiles["longshore"], fresh)
    for each in simulation.cluster.pods.values():
        waiting = not each.spec.node_name and not each.terminal and each.metadata.deletion_timestamp is None
        if waiting:
            assert not isinstance(chooser.decide(PodInfo.of(each)), Placement), each.key
