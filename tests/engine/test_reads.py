"""What a plugin reads of pods: the same from a watch, in the simulator and on a record, or a clear error."""

import json
import operator
from collections.abc import Callable
from copy import copy
from functools import partial

import msgspec
import pytest
from tests.engine.stage import configuration, profile

from longshore.api import Change, Pod, PodCondition
from longshore.api.kept import KeptAnnotations, KeptConditions
from longshore.cluster import OneNode, PodInfo
from longshore.engine import Bind, Engine, SetCondition
from longshore.framework import Reads, UndeclaredRead, filter_plugin
from longshore.framework.functions import FunctionPlugin
from longshore.framework.reads import EVERYTHING, kept_of
from longshore.kube._pb import kubernetes_pb2 as pb
from longshore.kube.resources import WHOLE_PODS, pods_with
from longshore.sim import Simulation, schedule
from longshore.testing import PodBuilder, node, pod

TEAM, COST = "example.com/team", "example.com/cost"
NODE = node("n1").allocatable(cpu="4", pods="10")
WEB = (
    pod("web")
    .annotations(**{TEAM: "blue", COST: "7", "other.org/note": "x"})
    .condition("Ready", "False", reason="Booting")
    .condition("PodScheduled", "False", reason="Unschedulable")
)
WORLDS = ("watched", "simulated", "recorded", "snapshot")


def wire(made: Pod) -> bytes:
    """The page of a list with the pod, as an API server sends it."""
    meta = pb.ObjectMeta(name=made.metadata.name, namespace="default", uid=made.metadata.uid)
    for key, value in made.metadata.annotations.items():
        meta.annotations.append(pb.StringEntry(key=key, value=value).SerializeToString())
    message = pb.Pod(
        metadata=meta, spec=pb.PodSpec(scheduler_name="longshore", node_name=made.spec.node_name)
    )
    message.status.phase = "Pending"
    for each in made.status.conditions:
        condition = pb.PodCondition(type=each.type, status=each.status, reason=each.reason)
        message.status.conditions.append(condition.SerializeToString())
    listed = pb.List(items=[message.SerializeToString()])
    return b"k8s\0" + pb.Unknown(raw=listed.SerializeToString()).SerializeToString()


def run_in(world: str, plugin: FunctionPlugin, made: Pod = WEB) -> tuple[str, str]:
    """The pod's node, and why it has none, if it reaches an engine with the plugin as in this world."""
    engine = Engine(configuration(profile(plugin)), plugins={plugin.name: lambda _args, _handle: plugin})
    if world == "simulated":
        simulation = Simulation(engine)
        simulation.create(NODE, made)
        simulation.run(until=1.0)
        [ended] = simulation.cluster.pods.values()
        told = ended.status.condition("PodScheduled")
        return ended.spec.node_name, "" if told is None else told.message
    if world == "recorded":
        there = msgspec.json.decode(msgspec.json.encode(made), type=Pod)
    else:
        resource = pods_with(engine.reads) if world == "watched" else WHOLE_PODS
        [there] = resource.codec.page(wire(made)).items
    engine.receive(Change(None, NODE), now=0.0)
    engine.receive(Change(None, there), now=0.0)
    effects = [instruction.effect for instruction in engine.advance(now=0.0)]
    nodes = [each.node for each in effects if isinstance(each, Bind)]
    messages = [each.condition.message for each in effects if isinstance(each, SetCondition)]
    return "".join(nodes), "".join(messages)


@pytest.mark.parametrize("world", WORLDS)
def test_a_plugin_sees_what_it_declares_and_the_same_in_every_world(world: str) -> None:
    seen: list[tuple[str | None, PodCondition | None]] = []

    @filter_plugin(reads=Reads(pod_annotations=(TEAM,), pod_conditions=("Ready",)))
    def looks(pod: PodInfo, _node: OneNode) -> None:
        seen.append((pod.annotations.get(TEAM), pod.condition("Ready")))

    assert run_in(world, looks) == ("n1", "")
    assert seen == [("blue", PodCondition("Ready", "False", "Booting"))]


@pytest.mark.parametrize("world", WORLDS)
def test_an_undeclared_annotation_fails_the_pod_in_every_world_and_says_what_to_declare(world: str) -> None:
    @filter_plugin
    def forgetful(pod: PodInfo, _node: OneNode) -> None:
        pod.annotations.get(COST)

    node, message = run_in(world, forgetful)
    assert node == ""
    assert 'running "Forgetful" filter plugin: UndeclaredRead(' in message
    assert f'the annotation "{COST}" of the pod is not kept' in message
    assert f'reads = Reads(pod_annotations=("{COST}",))' in message


@pytest.mark.parametrize("world", WORLDS)
def test_an_undeclared_condition_fails_the_pod_in_every_world_and_says_what_to_declare(world: str) -> None:
    @filter_plugin
    def forgetful(pod: PodInfo, _node: OneNode) -> None:
        pod.condition("Ready")

    node, message = run_in(world, forgetful)
    assert node == ""
    assert 'the condition "Ready" of the pod is not kept' in message
    assert 'reads = Reads(pod_conditions=("Ready",))' in message


@pytest.mark.parametrize("world", WORLDS)
def test_looking_through_all_conditions_needs_a_declaration_of_all(world: str) -> None:
    @filter_plugin(reads=Reads(pod_conditions=("Ready",)))
    def curious(pod: PodInfo, _node: OneNode) -> None:
        [each for each in pod.pod.status.conditions if each.type == "Ready"]

    node, message = run_in(world, curious)
    assert node == ""
    assert 'reads = Reads(pod_conditions=("*",))' in message


@pytest.mark.parametrize("world", WORLDS)
def test_a_plugin_that_declares_everything_sees_everything(world: str) -> None:
    seen: list[tuple[dict[str, str], list[str]]] = []

    @filter_plugin(reads=EVERYTHING)
    def looks(pod: PodInfo, _node: OneNode) -> None:
        seen.append((dict(pod.annotations), [each.type for each in pod.pod.status.conditions]))

    run_in(world, looks)
    assert seen == [(WEB.metadata.annotations, ["Ready", "PodScheduled"])]


@pytest.mark.parametrize("world", WORLDS)
def test_a_prefix_declares_every_annotation_of_a_domain(world: str) -> None:
    seen: list[str | None] = []

    @filter_plugin(reads=Reads(pod_annotations=("example.com/*",)))
    def looks(pod: PodInfo, _node: OneNode) -> None:
        seen.append(pod.annotations[COST])

    assert run_in(world, looks) == ("n1", "")
    assert seen == ["7"]


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("kind", ["PodScheduled", "PodResizePending", "DisruptionTarget"])
def test_conditions_that_longshore_itself_needs_have_to_be_declared_too(world: str, kind: str) -> None:
    @filter_plugin
    def forgetful(pod: PodInfo, _node: OneNode) -> None:
        pod.condition(kind)

    node, message = run_in(world, forgetful)
    assert node == ""
    assert f'the condition "{kind}" of the pod is not kept' in message


@pytest.mark.parametrize("world", WORLDS)
def test_a_plugin_reads_why_a_pod_waits(world: str) -> None:
    seen: list[str] = []

    @filter_plugin(reads=Reads(pod_conditions=("PodScheduled",)))
    def looks(pod: PodInfo, _node: OneNode) -> None:
        condition = pod.condition("PodScheduled")
        seen.append("" if condition is None else condition.reason)

    assert run_in(world, looks) == ("n1", "")
    assert seen == ["Unschedulable"]


def neighbors_conditions(kind: str, reads: Reads) -> tuple[list[float], str]:
    """Return when a plugin could read the condition of a neighbor, and the condition of the pod that asks.

    The neighbor is assumed on the node from 0 s on, and the watch confirms it at 10 s.
    """
    times: list[float] = []

    @filter_plugin(reads=reads)
    def looks(_pod: PodInfo, node: OneNode) -> None:
        for each in node.pods:
            assert each.condition(kind) is None
            times.append(simulation.now)

    engine = Engine(configuration(profile(looks)), plugins={"Looks": lambda _args, _handle: looks})
    simulation = Simulation(engine, watch_latency=10.0)
    simulation.create(NODE, pod("first"))
    simulation.create(pod("while-assumed"), at=2.0)
    simulation.create(pod("once-confirmed"), at=30.0)
    simulation.run(until=60.0)
    told = simulation.cluster.pods["default/while-assumed"].status.condition("PodScheduled")
    return times, "" if told is None else told.message


def test_what_may_be_read_of_a_neighbor_is_the_same_before_and_after_the_watch_confirms_it() -> None:
    times, _ = neighbors_conditions("PodResizePending", Reads(pod_conditions=("PodResizePending",)))
    assert times == [12.0, 40.0, 40.0]
    times, message = neighbors_conditions("PodResizePending", Reads())
    assert times == []
    assert 'the condition "PodResizePending" of the pod is not kept' in message


OTHERS = {COST: "7"}
MADE = PodCondition("Ready", "True")


@pytest.mark.parametrize(
    "read",
    [
        lambda annotations: annotations[COST],
        lambda annotations: COST in annotations,
        lambda annotations: annotations.get(COST, ""),
        lambda annotations: annotations.setdefault(COST, ""),
        lambda annotations: annotations.pop(COST, ""),
        lambda annotations: annotations.popitem(),
        lambda annotations: operator.delitem(annotations, COST),
        dict,
        list,
        lambda annotations: list(reversed(annotations)),
        lambda annotations: {**annotations},
        lambda annotations: {} | annotations,
        partial(operator.ior, {}),
        {}.update,
        lambda annotations: annotations | {},
        lambda annotations: annotations.__ior__({}),
        lambda annotations: annotations == OTHERS,
        lambda annotations: annotations != OTHERS,
        partial(operator.eq, OTHERS),
        lambda annotations: annotations.items(),
        lambda annotations: annotations.values(),
        lambda annotations: annotations.keys(),
        copy,
        json.dumps,
        bool,
        len,
    ],
)
def test_no_operation_of_a_dict_reads_undeclared_annotations(read: Callable[[object], object]) -> None:
    @filter_plugin(reads=Reads(pod_annotations=(TEAM,)))
    def looks(pod: PodInfo, _node: OneNode) -> None:
        read(pod.annotations)

    placed = schedule(nodes=[NODE], pods=[WEB], plugins=[looks])
    assert "UndeclaredRead" in placed.pending["web"]


@pytest.mark.parametrize(
    "read",
    [
        lambda conditions: conditions[0],
        lambda conditions: conditions[:1],
        lambda conditions: MADE in conditions,
        lambda conditions: conditions.count(MADE),
        lambda conditions: conditions.index(MADE),
        list,
        tuple,
        lambda conditions: (*conditions,),
        lambda conditions: list(reversed(conditions)),
        lambda conditions: operator.add(conditions, ()),
        partial(operator.add, ()),
        lambda conditions: conditions * 2,
        lambda conditions: 2 * conditions,
        lambda conditions: conditions == (MADE,),
        lambda conditions: conditions != (MADE,),
        partial(operator.eq, (MADE,)),
        lambda conditions: conditions < (MADE,),
        lambda conditions: conditions <= (MADE,),
        lambda conditions: conditions > (MADE,),
        lambda conditions: conditions >= (MADE,),
        bool,
        len,
    ],
)
def test_no_operation_of_a_tuple_reads_undeclared_conditions(read: Callable[[object], object]) -> None:
    @filter_plugin(reads=Reads(pod_conditions=("Ready",)))
    def looks(pod: PodInfo, _node: OneNode) -> None:
        read(pod.pod.status.conditions)

    placed = schedule(nodes=[NODE], pods=[WEB], plugins=[looks])
    assert "UndeclaredRead" in placed.pending["web"]


# What does not return annotations or conditions: printing is for people, and dicts have no order.
UNCHECKED: dict[type, str] = {
    KeptAnnotations: "__repr__ __sizeof__ __lt__ __le__ __gt__ __ge__ __setitem__ clear fromkeys update",
    KeptConditions: "__repr__ __hash__ __getnewargs__",
}


@pytest.mark.parametrize(("kept", "base"), [(KeptAnnotations, dict), (KeptConditions, tuple)])
def test_every_method_that_reads_is_checked(kept: type, base: type) -> None:
    construction = {"__new__", "__init__", "__getattribute__", "__class_getitem__"}
    methods = {name for name in vars(base) if callable(getattr(base, name))} - construction
    unchecked = {name for name in methods if vars(kept).get(name) in (None, vars(base)[name])}
    assert unchecked == set(UNCHECKED[kept].split())


def test_pods_of_one_scheduler_are_comparable() -> None:
    kept = kept_of(Reads(pod_annotations=(TEAM,), pod_conditions=("Ready",)))
    one, same = kept.pod(WEB), kept.pod(WEB.on("n1"))
    other = kept.pod(WEB.annotations(**{TEAM: "red"}).condition("Ready", "True"))
    assert one.metadata == same.metadata
    assert one.metadata != other.metadata
    assert one.status != other.status
    assert hash(one.status.conditions) == hash(kept.pod(WEB).status.conditions)


def test_pods_of_which_different_names_are_kept_are_not_comparable() -> None:
    one, other = kept_of(Reads(("a",))).pod(WEB), kept_of(Reads(("b",))).pod(WEB)
    with pytest.raises(UndeclaredRead, match="not every annotation"):
        assert one.metadata != other.metadata


def test_a_field_that_one_plugin_declares_can_be_read_by_all() -> None:
    @filter_plugin(reads=Reads(pod_annotations=(TEAM,)))
    def declares(_pod: PodInfo, _node: OneNode) -> None: ...

    @filter_plugin
    def reads_too(pod: PodInfo, _node: OneNode) -> str | None:
        return None if pod.annotations[TEAM] == "blue" else "wrong team"

    assert schedule(nodes=[NODE], pods=[WEB], plugins=[declares, reads_too]) == {"web": "n1"}


def test_pods_on_a_node_also_have_the_declared_fields() -> None:
    there = pod("there").on("n1").annotations(**{TEAM: "red"}).condition("Ready", "True")

    @filter_plugin(reads=Reads(pod_annotations=(TEAM,), pod_conditions=("Ready",)))
    def apart(pod: PodInfo, node: OneNode) -> str | None:
        others = [each for each in node.pods if each.condition("Ready") is not None]
        return (
            "another team"
            if any(each.annotations[TEAM] != pod.annotations[TEAM] for each in others)
            else None
        )

    placed = schedule(nodes=[NODE], pods=[there, WEB], plugins=[apart])
    assert "another team" in placed.pending["web"]


def test_a_new_annotation_tries_the_pod_again_only_if_it_is_read() -> None:
    def tried(changed: str) -> list[float]:
        times: list[float] = []

        @filter_plugin(reads=Reads(pod_annotations=(TEAM,)), wakes_on=())
        def never(_pod: PodInfo, _node: OneNode) -> str:
            times.append(simulation.now)
            return "never"

        engine = Engine(configuration(profile(never)), plugins={"Never": lambda _args, _handle: never})
        simulation = Simulation(engine)
        simulation.create(NODE, WEB)
        simulation.update(WEB.annotations(**{changed: "new"}), at=100.0)
        simulation.run(until=200.0)
        return sorted(set(times))

    assert tried(COST) == [0.0]
    assert tried(TEAM) == [0.0, 100.0]


def test_a_pod_that_reaches_the_engine_twice_is_trimmed_once() -> None:
    engine = Engine()
    kept = engine.kept(WEB)
    assert engine.kept(kept) is kept
    engine.receive(Change(None, kept), now=0.0)
    [entry] = engine.queue.waiting()
    assert entry.pod is kept


def test_a_builder_stays_a_builder() -> None:
    assert isinstance(Engine().kept(WEB), PodBuilder)
