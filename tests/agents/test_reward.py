"""Reward in virtual time: it learns from the outcomes of pods, and remembers them after a restart."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.agents.learning import EPOCH, agent, configuration, learning, scores, typed
from tests.agents.test_reward_outcomes import at, container, ended, up

from longshore.agents.reward.learning import BETWEEN_WRITES
from longshore.agents.reward.plugin import Reward
from longshore.api import Change, ObjectMeta
from longshore.api.config_map import ConfigMap
from longshore.api.pod_run import PodRun, PodRunSpec, PodRunStatus
from longshore.cluster import ClusterState, PodInfo
from longshore.config.registry import register
from longshore.engine import Answered, Bind, Done, Engine, Failed, Gone, Outcome, Request, Succeeded
from longshore.errors import UserError
from longshore.framework import CycleState
from longshore.framework.effects import CreateObject, GetObject, PatchObject
from longshore.sim import Simulation
from longshore.testing import node, pod

NODES = [node(name).allocatable(cpu="4", memory="8Gi") for name in ("n1", "n2", "n3")]
STORE = "kube-system/longshore-rewards"


def fail(simulation: Simulation, *names: str, kind: str = "D", on: str = "n1") -> None:
    """Put pods of the type on the node, which fail a second later."""
    for name in names:
        made = typed(name, kind).on(on)
        simulation.create(made.phase("Running"))
        simulation.update(made.phase("Failed"), at=simulation.now + 1)
    simulation.run(until=simulation.now + 2)


def begun(**args: object) -> Simulation:
    simulation = Simulation(learning(**args))
    simulation.create(*NODES)
    simulation.run(until=1.0)
    return simulation


def stored(simulation: Simulation) -> ConfigMap:
    found = simulation.cluster.others[ConfigMap][STORE]
    assert isinstance(found, ConfigMap)
    return found


def test_pods_avoid_the_node_where_five_of_their_type_failed() -> None:
    simulation = begun()
    fail(simulation, *"abcde")
    assert scores(simulation.engine, typed("new")) == {"n1": 50, "n2": 100, "n3": 100}
    simulation.create(typed("new"))
    simulation.run(until=20.0)
    assert simulation.bindings["default/new"] == "n2"


def test_without_failures_the_first_node_is_as_good_as_any() -> None:
    simulation = begun()
    simulation.create(typed("new"))
    simulation.run(until=20.0)
    assert simulation.bindings["default/new"] == "n1"


def test_rewards_survive_a_restart_and_nothing_counts_twice() -> None:
    simulation = begun()
    fail(simulation, *"abcde")
    simulation.run(until=20.0)
    for engine in (learning(), learning()):
        simulation.restart(engine)
        simulation.run(until=simulation.now + 20.0)
        assert scores(engine, typed("new")) == {"n1": 50, "n2": 100, "n3": 100}
    fail(simulation, "f", "g")
    assert scores(simulation.engine, typed("new"))["n1"] == 40


def test_outcomes_from_before_the_restart_count_by_their_time() -> None:
    simulation = begun()
    fail(simulation, "a")
    simulation.run(until=20.0)
    before, since = EPOCH + 1, EPOCH + 30
    for number, time in enumerate((before, since)):
        meta = ObjectMeta(name=f"b{number}", namespace="default", uid=f"b{number}", labels={"podtype": "D"})
        status = PodRunStatus("Failed", (container(ended(time)),))
        simulation.cluster.put(PodRun(meta, PodRunSpec("n1"), status))
    simulation.agenda.now = 40.0
    simulation.restart(learning())
    simulation.run(until=60.0)
    assert scores(simulation.engine, typed("new"))["n1"] == 80


def test_a_node_recovers_while_a_pod_stays_up_there() -> None:
    simulation = begun()
    fail(simulation, *"abcde")
    simulation.create(typed("good").on("n1").phase("Running"), at=20.0)
    simulation.run(until=619.0)
    assert scores(simulation.engine, typed("new"))["n1"] == 50
    simulation.run(until=621.0)
    assert scores(simulation.engine, typed("new"))["n1"] == 60


def test_a_node_recovers_when_a_pod_that_was_scheduled_there_completes() -> None:
    simulation = Simulation(learning(), start_time=1.0, run_time=5.0)
    simulation.create(NODES[0])
    fail(simulation, *"abcde")
    simulation.create(typed("new"), at=10.0)
    simulation.run(until=15.0)
    assert scores(simulation.engine, typed("newer"))["n1"] == 50
    simulation.run(until=17.0)
    assert scores(simulation.engine, typed("newer"))["n1"] == 60


def test_an_avoided_node_is_tried_again_after_some_half_lives() -> None:
    simulation = begun(halfLife="1h")
    fail(simulation, *"abcdefghij")
    found = []
    for hours in (0, 1, 2, 10, 30):
        simulation.run(until=10 + 3600.0 * hours)
        simulation.create(node("n4"), at=simulation.now)
        simulation.run(until=simulation.now + 1)
        found.append(scores(simulation.engine, typed("new"))["n1"])
    assert found == [30, 60, 80, 90, 100]


def test_only_pods_of_the_configured_namespaces_are_learned_from() -> None:
    simulation = begun(namespaces=["prod"])
    fail(simulation, *"abcde")
    assert scores(simulation.engine, typed("new"))["n1"] == 100
    for name in "abcde":
        made = pod(name, namespace="prod").labels(podtype="D").on("n1")
        simulation.create(made.phase("Failed"))
    simulation.run(until=10.0)
    assert scores(simulation.engine, typed("new"))["n1"] == 50


def test_observing_pod_runs_does_not_affect_other_pods() -> None:
    simulation = begun()
    simulation.create(typed("a").requests(cpu="1"), typed("b").requests(cpu="1"))
    simulation.run(until=20.0)
    assert simulation.engine.cluster.pod_count == 2
    counts = simulation.engine.queue.counts()
    assert sum(counts.values()) == 0


def test_rewards_are_written_at_most_every_ten_seconds() -> None:
    simulation = begun(halfLife="0s")
    versions = set()
    for number in range(30):
        made = typed(f"p{number}").on("n1")
        simulation.create(made.phase("Failed"))
        simulation.run(until=simulation.now + 1)
        versions.add(stored(simulation).metadata.resource_version)
    # One immediately, and one every ten seconds.
    assert len(versions) == 1 + 30 / BETWEEN_WRITES
    simulation.run(until=simulation.now + 100)
    assert "pairs/D/n1 0.042391" in stored(simulation).data["rewards"]
    last = stored(simulation).metadata.resource_version
    simulation.run(until=simulation.now + 1000)
    assert stored(simulation).metadata.resource_version == last


def test_nothing_is_written_while_all_pods_do_well() -> None:
    simulation = begun()
    simulation.create(typed("good").on("n1").phase("Running"))
    simulation.run(until=10_000.0)
    assert ConfigMap not in simulation.cluster.others


def test_at_the_end_rewards_are_written_immediately() -> None:
    simulation = begun(halfLife="0s")
    fail(simulation, "a")
    fail(simulation, "b")
    assert "0.900000" in stored(simulation).data["rewards"]
    [request] = simulation.engine.finish(now=simulation.now)
    assert isinstance(request.effect, PatchObject)
    assert "pairs/D/n1 0.810000" in request.effect.patch["data"]["rewards"]


def test_two_profiles_count_an_outcome_once() -> None:
    simulation = Simulation(learning("one", "two"))
    simulation.create(*NODES)
    fail(simulation, "a")
    for profile in ("one", "two"):
        assert scores(simulation.engine, typed("new"), profile)["n1"] == 90


def test_nodes_of_another_cluster_are_recognized_by_their_names() -> None:
    simulation = begun()
    fail(simulation, *"abcde")
    others = ClusterState()
    for name in ("other", "n2", "n1"):
        others.add_node(node(name))
    found = agent(simulation.engine).score(CycleState(), PodInfo.of(typed("new")), others.all_nodes())
    assert found.tolist() == [100, 100, 50]
    assert scores(simulation.engine, typed("new")) == {"n1": 50, "n2": 100, "n3": 100}


def test_profiles_with_different_arguments_are_an_error() -> None:
    both = configuration("one", "two")
    other = configuration("one", "two", mttf="1m")
    mixed = type(both)(profiles=(both.profiles[0], other.profiles[1]))
    with pytest.raises(UserError, match="the same in all profiles"):
        Engine(mixed, plugins={"Reward": register(Reward)})


@pytest.mark.parametrize(
    "args",
    [
        {"mttf": "ten"},
        {"halfLife": "-1h"},
        {"entries": 0},
        {"configMap": "../secrets"},
        {"configMapNamespace": "Kube System"},
        {"unheard": "of"},
    ],
)
def test_invalid_arguments_are_reported_in_one_line(args: dict[str, object]) -> None:
    with pytest.raises(UserError, match=r"arguments of Reward: [^\n]*$"):
        learning(**args)


# Answers of the API server.


def warnings(logs: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [entry for entry in logs if entry["log_level"] == "warning"]


def restarted_with(data: dict[str, str]) -> tuple[Simulation, list[str]]:
    simulation = begun(configMap="")
    meta = ObjectMeta(name="longshore-rewards", namespace="kube-system")
    simulation.create(ConfigMap(metadata=meta, data=data))
    simulation.run(until=2.0)
    with capture_logs() as logs:
        simulation.restart(learning())
        fail(simulation, "a")
        simulation.run(until=simulation.now + 100)
    return simulation, [entry["event"] for entry in warnings(logs)]


@pytest.mark.parametrize("data", [{"settings.yaml": "a: b"}, {"rewards": "rubbish", "until": "never"}])
def test_invalid_content_causes_one_warning_and_a_fresh_start(data: dict[str, str]) -> None:
    simulation, told = restarted_with(data)
    assert told == ["rewards: the ConfigMap has invalid content; starting without rewards"]
    assert scores(simulation.engine, typed("new"))["n1"] == 90
    written = stored(simulation).data
    assert "pairs/D/n1 0.900000" in written["rewards"]
    assert data.keys() <= written.keys()


def test_an_existing_empty_config_map_is_filled() -> None:
    simulation, told = restarted_with({})
    assert told == []
    assert "pairs/D/n1 0.900000" in stored(simulation).data["rewards"]


class Answering:
    """An engine whose requests are answered by hand."""

    def __init__(self) -> None:
        self.engine = learning(halfLife="0s")
        for each in NODES:
            self.engine.receive(Change(None, each), now=0.0)

    def fails(self, name: str, *, now: float) -> None:
        meta = ObjectMeta(name=name, namespace="default", uid=name, labels={"podtype": "D"})
        running = PodRun(meta, PodRunSpec("n1"), PodRunStatus("Running", (container(up(EPOCH)),)))
        failed = PodRun(meta, PodRunSpec("n1"), PodRunStatus("Failed"))
        self.engine.receive(Change(None, running), now=now)
        self.engine.receive(Change(running, failed), now=now)

    def answer(self, request: Request, outcome: Outcome, *, now: float) -> list[Request]:
        self.engine.receive(Done(request.id, outcome), now=now)
        return self.asked(now=now)

    def asked(self, *, now: float) -> list[Request]:
        due = self.engine.deadline
        asked = self.engine.advance(now=now) if due is not None and due <= now else []
        return [each for each in asked if isinstance(each, Request)]


def test_without_permission_to_read_it_continues_in_memory_with_one_warning() -> None:
    here = Answering()
    [read] = here.asked(now=0.0)
    with capture_logs() as logs:
        here.answer(read, Failed("configmaps is forbidden", 403), now=0.0)
        for number in range(5):
            here.fails(f"p{number}", now=100.0 * number)
            assert here.asked(now=100.0 * number + 50) == []
    assert scores(here.engine, typed("new"))["n1"] == 50
    [entry] = warnings(logs)
    assert "no permission to read the ConfigMap" in entry["event"]
    assert entry["configmap"] == STORE
    assert here.engine.finish(now=600.0) == []


def test_without_permission_to_write_it_continues_in_memory_with_one_warning() -> None:
    here = Answering()
    [read] = here.asked(now=0.0)
    here.answer(read, Gone("not found", 404), now=0.0)
    here.fails("a", now=1.0)
    [patch] = here.asked(now=1.0)
    with capture_logs() as logs:
        [create] = here.answer(patch, Gone("not found", 404), now=1.0)
        assert isinstance(create.effect, CreateObject)
        here.answer(create, Failed("configmaps is forbidden", 403), now=1.0)
        here.fails("b", now=100.0)
        assert here.asked(now=200.0) == []
    [entry] = warnings(logs)
    assert "no permission to write the ConfigMap" in entry["event"]
    assert scores(here.engine, typed("new"))["n1"] == 80


def test_outcomes_are_buffered_while_the_config_map_cannot_be_read() -> None:
    here = Answering()
    [read] = here.asked(now=0.0)
    here.fails("a", now=0.0)
    here.answer(read, Failed("connection refused"), now=0.0)
    here.fails("b", now=1.0)
    assert scores(here.engine, typed("new"))["n1"] == 100
    assert here.asked(now=4.0) == []
    [again] = here.asked(now=5.0)
    assert isinstance(again.effect, GetObject)
    # Another replica has counted the first of the two.
    data = {
        "until": at(EPOCH).replace("Z", ".500Z"),
        "rewards": f"pairs/D/n1 0.900000 {at(EPOCH)}\nnodes/n1 0.900000 {at(EPOCH)}\n",
    }
    here.answer(again, Answered(ConfigMap(data=data)), now=5.0)
    assert scores(here.engine, typed("new"))["n1"] == 80


def test_a_failed_write_is_repeated_with_all_later_outcomes() -> None:
    here = Answering()
    [read] = here.asked(now=0.0)
    here.answer(read, Gone(), now=0.0)
    here.fails("a", now=1.0)
    [patch] = here.asked(now=1.0)
    here.fails("b", now=2.0)
    here.answer(patch, Failed("the server is busy", 503), now=3.0)
    assert here.asked(now=10.0) == []
    [again] = here.asked(now=11.0)
    assert isinstance(again.effect, PatchObject)
    assert "pairs/D/n1 0.810000" in again.effect.patch["data"]["rewards"]
    assert here.answer(again, Succeeded(), now=11.0) == []
    assert here.asked(now=100.0) == []


def test_no_pod_is_tried_before_the_rewards_are_known() -> None:
    here = Answering()
    here.engine.receive(Change(None, typed("new")), now=0.0)
    [read] = here.asked(now=0.0)
    assert here.asked(now=1.0) == []
    lines = [f"{path} 0.500000 {at(EPOCH)}\n" for path in ("pairs/D/n1", "nodes/n1")]
    data = {"until": at(EPOCH), "rewards": "".join(lines)}
    [bind] = here.answer(read, Answered(ConfigMap(data=data)), now=2.0)
    assert isinstance(bind.effect, Bind)
    assert bind.effect.node == "n2"


def test_pods_do_not_wait_for_rewards_that_cannot_be_read() -> None:
    here = Answering()
    here.engine.receive(Change(None, typed("new")), now=0.0)
    [read] = here.asked(now=0.0)
    [bind] = here.answer(read, Failed("connection refused"), now=1.0)
    assert isinstance(bind.effect, Bind)
