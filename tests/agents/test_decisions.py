"""Agents in a profile, in virtual time: where pods go, their messages, and what wakes them."""

from typing import Any

import msgspec
import pytest
from tests.engine.stage import Stage, configuration, profile

from longshore.agents.annotations import MEASURED_AT, read_load
from longshore.agents.congestion import Congestion
from longshore.agents.foo import Foo
from longshore.agents.load import REASON_NO_MEASUREMENTS
from longshore.agents.pigeon import PigeonHoling
from longshore.agents.safe import REASON_RISK, SafeBalance, SafeOverload
from longshore.api.meta import ApiObject
from longshore.config.registry import register
from longshore.engine import Engine
from longshore.testing import NodeBuilder, PodBuilder, node, pod

GIB = 2**30
CPU_REASON = REASON_RISK.format(utilization=90, resource="cpu", percentile=30)


class Agents(Stage):
    """Only these agents, with their arguments by name, and a cluster whose load is in annotations."""

    def __init__(self, *kinds: Any, args: dict[str, dict[str, object]] | None = None, seed: int = 0) -> None:
        chosen = msgspec.structs.replace(profile(*kinds), args=args or {})
        plugins = {kind.name: register(kind) for kind in kinds}
        super().__init__(engine=Engine(configuration(chosen, seed=seed), plugins=plugins))
        read_load(self.engine.cluster)

    def settled(self, *objects: ApiObject) -> "Agents":
        self.create(*objects)
        self.run(until=self.now + 1.0)
        return self


def there(name: str, free_cpu: int, std_cpu: int, free_memory: int, std_memory: int) -> NodeBuilder:
    built = node(name).allocatable(cpu="8", memory="16Gi")
    return built.annotations(
        **{
            "mean-free-cpu": str(free_cpu),
            "std-free-cpu": str(std_cpu),
            "mean-free-memory": str(free_memory),
            "std-free-memory": str(std_memory),
        }
    )


IDLE = there("idle", 6000, 400, 12 * GIB, GIB)
WARM = there("warm", 2400, 500, 5 * GIB, GIB)
SPIKY = there("spiky", 3200, 2000, 10 * GIB, 3 * GIB)
FULL = there("full", 900, 300, 2 * GIB, GIB // 2)
BARE = node("bare").allocatable(cpu="8", memory="16Gi")


def web(name: str = "web") -> PodBuilder:
    return pod(name).requests(cpu="500m", memory="1Gi")


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([FULL, SPIKY, WARM, IDLE], "idle"),
        ([FULL, SPIKY, WARM], "warm"),
        ([FULL, SPIKY], "spiky"),
        ([BARE, FULL, WARM], "warm"),
        ([BARE, FULL], "bare"),
    ],
)
def test_safe_overload_chooses_the_node_with_the_lowest_risk(nodes: list[NodeBuilder], expected: str) -> None:
    assert Agents(SafeOverload).settled(*nodes, web()).node_of("web") == expected


def test_a_pod_for_which_every_node_is_too_risky_waits_with_that_reason() -> None:
    agents = Agents(SafeOverload).settled(FULL, web())
    assert agents.message("web").startswith(f"0/1 nodes are available: 1 {CPU_REASON}")
    assert [reason for reason, _ in agents.told("web")] == ["FailedScheduling"]


def test_a_pod_is_tried_again_when_the_annotations_of_a_node_change() -> None:
    agents = Agents(SafeOverload).settled(FULL, web())
    agents.update(FULL.annotations(**IDLE.metadata.annotations))
    agents.run(until=60.0)
    assert agents.node_of("web") == "full"


def test_a_pod_is_tried_again_after_new_measurements() -> None:
    agents = Agents(SafeOverload, args={"SafeOverload": {"missing": "FailClosed"}}).settled(BARE, web())
    assert REASON_NO_MEASUREMENTS in agents.message("web")
    agents.measure({"cpu/mean": {"bare": 1000.0}, "memory/mean": {"bare": 1.0 * GIB}}, at=30.0)
    agents.run(until=60.0)
    assert agents.node_of("web") == "bare"


def test_measurements_that_are_not_renewed_expire() -> None:
    agents = Agents(SafeOverload, args={"SafeOverload": {"missing": "FailClosed"}}).settled(BARE)
    agents.measure({"cpu/mean": {"bare": 1000.0}, "memory/mean": {"bare": 1.0 * GIB}})
    # A provider without measurements still sets the time.
    agents.measure({}, at=400.0)
    agents.create(web(), at=401.0)
    agents.run(until=402.0)
    assert REASON_NO_MEASUREMENTS in agents.message("web")


def test_a_burst_of_pods_is_spread_without_new_measurements() -> None:
    agents = Agents(SafeOverload).settled(
        *(node(f"n{i}").allocatable(cpu="8", memory="64Gi") for i in range(5))
    )
    agents.measure(
        {"cpu/mean": {f"n{i}": 1000.0 for i in range(5)}, "cpu/std": {f"n{i}": 400.0 for i in range(5)}}
    )
    agents.settled(*(pod(f"web-{number}").requests(cpu="2") for number in range(10)))
    placed = [agents.node_of(f"web-{number}") for number in range(10)]
    assert sorted(placed) == sorted(2 * [f"n{i}" for i in range(5)])


def test_in_a_burst_pods_follow_annotations_without_a_time() -> None:
    agents = Agents(SafeOverload).settled(IDLE, WARM)
    agents.settled(*(web(f"web-{number}") for number in range(10)))
    assert {agents.node_of(f"web-{number}") for number in range(10)} == {"idle"}


def test_a_burst_is_spread_if_annotations_have_a_time() -> None:
    at = {MEASURED_AT: "1970-01-01T00:00:00Z"}
    agents = Agents(SafeOverload).settled(IDLE.annotations(**at), WARM.annotations(**at))
    agents.settled(*(pod(f"web-{number}").requests(cpu="3") for number in range(2)))
    assert agents.node_of("web-0") == "idle"
    assert agents.place("web-1") != "nowhere"


def test_safe_balance_prefers_little_variation_where_overload_sees_no_risk() -> None:
    steady = node("x").allocatable(cpu="4").annotations(**{"mean-free-cpu": "2000", "std-free-cpu": "0"})
    lower = node("y").allocatable(cpu="4").annotations(**{"mean-free-cpu": "2600", "std-free-cpu": "1200"})
    assert Agents(SafeBalance).settled(lower, steady, pod("web")).node_of("web") == "x"


def test_congestion_avoids_congested_nodes() -> None:
    nodes = [
        node(f"n{factor}").annotations(**{"congestion-factor": factor}) for factor in ("100", "50", "10")
    ]
    assert Agents(Congestion).settled(*nodes, pod("web")).node_of("web") == "n10"


def test_the_scores_of_agents_are_weighted() -> None:
    congested = {"congestion-factor": "100"}
    agents = Agents(SafeOverload, Congestion).settled(IDLE.annotations(**congested), WARM, web())
    assert agents.node_of("web") == "warm"


def test_a_change_of_congestion_counts_for_the_next_pod_of_the_same_kind() -> None:
    agents = Agents(Congestion).settled(node("n1"), node("n2"), pod("first"), pod("second"))
    assert agents.node_of("first") == agents.node_of("second") == "n1"
    agents.settled(node("n1").annotations(**{"congestion-factor": "40"}), pod("third"))
    assert agents.node_of("third") == "n2"


@pytest.mark.parametrize(("policy", "expected"), [("LOAD_BALANCE", "n1"), ("CONSOLIDATE", "n3")])
def test_pigeon_holing_spreads_or_packs_by_policy(policy: str, expected: str) -> None:
    nodes = [
        node(f"n{number}")
        .allocatable(cpu="4", memory="8Gi")
        .annotations(**{"requested-cpu": str(number * 1000), "requested-memory": str(number * 2 * GIB)})
        for number in (1, 2, 3)
    ]
    agents = Agents(PigeonHoling, args={"PigeonHoling": {"policyObjective": policy}})
    assert agents.settled(*nodes, web()).node_of("web") == expected


def test_pigeon_holing_counts_the_pods_that_it_placed_itself() -> None:
    nodes = [node(f"n{number}").allocatable(cpu="4", memory="8Gi") for number in (1, 2, 3)]
    agents = Agents(PigeonHoling, args={"PigeonHoling": {"policyObjective": "LOAD_BALANCE"}})
    agents.settled(*nodes, *(web(f"web-{number}") for number in range(3)))
    assert {agents.node_of(f"web-{number}") for number in range(3)} == {"n1", "n2", "n3"}


def test_foo_changes_no_decision() -> None:
    nodes = [node(f"n{number}").allocatable(cpu="4") for number in range(4)]
    pods = [pod(f"web-{number}") for number in range(8)]
    placed = []
    for kinds in ((), (Foo,)):
        agents = Agents(*kinds).settled(*nodes, *pods)
        placed.append([agents.node_of(f"web-{number}") for number in range(8)])
    assert placed[0] == placed[1]
