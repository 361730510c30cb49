"""PigeonHoling compared with the golden file, its configuration, and its demand and usage."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import structlog
from tests.agents.one_agent import golden, made, scores
from tests.plugins.one_plugin import cluster_of

from longshore.agents import pigeon
from longshore.agents.annotations import ALLOCATED_AT
from longshore.agents.demand_history import DemandHistory
from longshore.agents.objectives import Model, adaptive_bin_packing, consolidate, load_balance
from longshore.agents.pigeon import PigeonHoling
from longshore.cluster import ClusterState, PodInfo
from longshore.errors import UserError
from longshore.framework import CycleState
from longshore.testing import NodeBuilder, PodBuilder, node, pod

SCENARIOS = golden()["pigeon"]
OBJECTIVES = {"A_BINPACK": adaptive_bin_packing, "LOAD_BALANCE": load_balance, "CONSOLIDATE": consolidate}
RESOURCES = ("cpu", "memory", "pods", "gpu", "ephemeral-storage")
UNITS = ("m", "Mi", "", "", "Gi")
BYTES = (1, 2**20, 1, 1, 2**30)


def policy(scenario: dict[str, Any]) -> str:
    return str(scenario["env_POLICY_OBJECTIVE"] or scenario["file_policyObjective"])


def title(scenario: dict[str, Any]) -> str:
    nodes = "".join(each["name"] for each in scenario["nodes"])
    return f"{policy(scenario)}-{scenario['NUM_RESOURCES']}-{nodes}-{len(scenario['pods'])}"


# It makes no difference here whether the file or the environment chose A_BINPACK: demand is always recorded.
MENDED = [each for each in SCENARIOS if each["env_POLICY_OBJECTIVE"] == "A_BINPACK"]
KEPT = [each for each in SCENARIOS if each not in MENDED]


def used(name: str, capacity: list[int], usage: list[int]) -> NodeBuilder:
    pairs = list(zip(RESOURCES, capacity, UNITS, strict=False))
    built = node(name).allocatable(**{resource: f"{amount}{unit}" for resource, amount, unit in pairs})
    said = zip(RESOURCES, usage, BYTES, strict=False)
    return built.annotations(
        **{f"requested-{resource}": str(amount * unit) for resource, amount, unit in said}
    )


def asking(demand: list[int]) -> PodBuilder:
    pairs = list(zip(RESOURCES, demand, UNITS, strict=False))
    return pod("web").requests(**{r: f"{amount}{unit}" for r, amount, unit in pairs if r != "pods"})


P = [
    used("n1", [4000, 8192], [1000, 2048]),
    used("n2", [4000, 8192], [2000, 4096]),
    used("n3", [4000, 8192], [3000, 6144]),
]


def cluster_p() -> ClusterState:
    return cluster_of(*P)


def tens(agent: Any, web: PodBuilder, cluster: ClusterState) -> list[int]:
    found = scores(agent, web, cluster)
    assert all(score % 10 == 0 for score in found.values())
    return [score // 10 for score in found.values()]


@pytest.mark.parametrize("scenario", KEPT, ids=map(title, KEPT))
def test_the_objectives_equal_those_of_the_golden_file(scenario: dict[str, Any]) -> None:
    capacity, usage = (
        np.array([each[what] for each in scenario["nodes"]], float).T for what in ("capacity", "usage")
    )
    history = DemandHistory(scenario["NUM_RESOURCES"])
    for each in scenario["pods"]:
        demand = np.array(each["demand"], float)
        history.add(demand)
        model = Model(capacity, usage, demand, history)
        found = OBJECTIVES[policy(scenario)](model, scenario["policyResourceIndex"])
        expected = [np.nan if value is None else value for value in each["objective"].values()]
        assert np.where(model.fits, found, np.nan).tolist() == pytest.approx(expected, abs=1e-6, nan_ok=True)


@pytest.mark.parametrize("scenario", KEPT, ids=map(title, KEPT))
def test_the_scores_equal_those_of_the_golden_file(scenario: dict[str, Any]) -> None:
    cluster = cluster_of(*(used(each["name"], each["capacity"], each["usage"]) for each in scenario["nodes"]))
    agent = made(
        PigeonHoling,
        cluster,
        policyObjective=policy(scenario),
        policyResourceIndex=scenario["policyResourceIndex"],
        numResources=scenario["NUM_RESOURCES"],
    )
    found = [scores(agent, asking(each["demand"]), cluster) for each in scenario["pods"]]
    assert found == [
        {name: score * 10 for name, score in each["scores"].items()} for each in scenario["pods"]
    ]


GPU_MIX = (
    ([32000, 262144, 4], [16000, 131072, 2]),
    ([32000, 262144, 4], [8000, 65536, 0]),
    ([32000, 262144, 4], [24000, 65536, 4]),
    ([16000, 131072, 0], [4000, 32768, 0]),
)
UNLIKE = (([8000, 16384], [2000, 4096]), ([4000, 8192], [1500, 1024]), ([2000, 4096], [500, 2048]))
NAN = np.nan


@pytest.mark.parametrize(
    ("objective", "nodes", "pods"),
    [
        (
            "A_BINPACK",
            GPU_MIX,
            [
                ([2000, 24576, 0], [0.582736, 0.533774, 0.608591, 0.483117], [3, 6, 1, 10]),
                ([8000, 32768, 2], [0.099438, 0.329508, NAN, NAN], [10, 1, 0, 0]),
                ([16000, 98304, 4], [NAN, 0.282896, NAN, NAN], [0, 10, 0, 0]),
                ([2000, 24576, 0], [0.374537, 0.423499, 0.348682, 0.474156], [8, 5, 10, 1]),
            ],
        ),
        ("LOAD_BALANCE", UNLIKE, [([400, 512], [0.051370, 0.106066, 0.082496], [10, 1, 5])]),
        ("CONSOLIDATE", UNLIKE, [([400, 512], [0.876424, 0.772044, 0.806365], [1, 10, 7])]),
        (
            "A_BINPACK",
            UNLIKE,
            [
                ([400, 512], [0.167178, 0.160476, 0.384035], [10, 10, 1]),
                ([1600, 512], [0.411375, 0.263347, NAN], [1, 10, 0]),
                ([100, 3072], [0.186086, 0.144062, NAN], [1, 10, 0]),
            ],
        ),
    ],
    ids=["GPU mix", "unlike nodes spread", "unlike nodes packed", "unlike nodes after a mix"],
)
def test_objectives_and_scores_of_further_clusters_equal_those_of_the_original(
    objective: str,
    nodes: list[tuple[list[int], list[int]]],
    pods: list[tuple[list[int], list[float], list[int]]],
) -> None:
    """The expected values were computed with the library of the original."""
    capacity, usage = np.array(nodes, float).transpose(1, 2, 0)
    history = DemandHistory(len(capacity))
    for asked, objectives, tenths in pods:
        demand = np.array(asked, float)
        history.add(demand)
        model = Model(capacity, usage, demand, history)
        found = np.where(model.fits, OBJECTIVES[objective](model, 0), NAN)
        assert found.tolist() == pytest.approx(objectives, abs=1e-6, nan_ok=True)
        assert pigeon.scores(found).tolist() == [10 * score for score in tenths]


def test_demand_is_recorded_with_every_objective(tmp_path: Path) -> None:
    file = tmp_path / "pigeon.cfg"
    file.write_text("policyObjective = LOAD_BALANCE\n")
    (scenario,) = MENDED
    cluster = cluster_of(*(used(each["name"], each["capacity"], each["usage"]) for each in scenario["nodes"]))
    agent = made(PigeonHoling, cluster, configFile=str(file), policyObjective="A_BINPACK")
    assert tens(agent, asking([500, 1024]), cluster) == [10, 1]


def test_equal_pods_are_spread_and_then_packed_after_large_ones() -> None:
    cluster = cluster_p()
    agent = made(PigeonHoling, cluster, numResources=1)
    found = [tens(agent, pod("web").requests(cpu=cpu), cluster) for cpu in ("100m", "500m", "2", "100m")]
    assert found == [[10, 5, 1], [1, 6, 10], [1, 10, 0], [1, 6, 10]]


def test_old_demand_fades() -> None:
    cluster = cluster_p()
    agent = made(PigeonHoling, cluster)
    for _ in range(150):
        tens(agent, asking([500, 1024]), cluster)
    tens(agent, asking([1000, 512]), cluster)
    for _ in range(60):
        last = tens(agent, asking([250, 256]), cluster)
    assert last == [1, 7, 10]


def test_gpus_count_under_either_name() -> None:
    def gpus(name: str, resource: str) -> NodeBuilder:
        return used(name, [32000, 262144, 110], [0, 0, 0]).allocatable(**{resource: "4"})

    cluster = cluster_of(
        gpus("nvidia", "nvidia.com/gpu"), gpus("plain", "gpu"), used("none", [32000, 262144, 110], [0, 0, 0])
    )
    agent = made(PigeonHoling, cluster, numResources=4)
    for resource in ("nvidia.com/gpu", "gpu"):
        web = pod("web").requests(cpu="2", memory="24Gi", **{resource: "2"})
        assert tens(agent, web, cluster) == [10, 10, 0]
    assert tens(agent, pod("web").requests(cpu="2", memory="24Gi", gpu="5"), cluster) == [0, 0, 0]


def test_gpus_spread_and_pack_by_the_mix_of_pods() -> None:
    def gpus(name: str, capacity: list[int], usage: list[int]) -> NodeBuilder:
        return used(name, [*capacity[:2], 110, capacity[2]], [*usage[:2], 0, usage[2]])

    # The third resource has no effect: there are few pods compared with what the nodes allow.
    cluster = cluster_of(
        gpus("a", [32000, 262144, 4], [16000, 131072, 2]),
        gpus("b", [32000, 262144, 4], [8000, 65536, 0]),
        gpus("c", [32000, 262144, 4], [24000, 65536, 4]),
        gpus("d", [16000, 131072, 0], [4000, 32768, 0]),
    )
    agent = made(PigeonHoling, cluster, numResources=4)
    small, middle, large = ([2000, 24576, 1, 0], [8000, 32768, 1, 2], [16000, 98304, 1, 4])
    found = [tens(agent, asking(demand), cluster) for demand in (small, middle, large, small)]
    best = [scored.index(10) for scored in found]
    assert best == [3, 0, 1, 2]
    assert found[1][2:] == [0, 0]


@pytest.mark.parametrize(("storage", "fits"), [("1Gi", True), ("10Gi", True), ("11Gi", False), ("4Gi", True)])
def test_storage_is_compared_in_the_same_unit(storage: str, fits: bool) -> None:
    cluster = cluster_of(used("n1", [4000, 8192, 110, 0, 20], [0, 0, 0, 0, 10]))
    agent = made(PigeonHoling, cluster, numResources=5)
    web = pod("web").requests(cpu="1", memory="1Gi", **{"ephemeral-storage": storage})
    assert tens(agent, web, cluster) == [10 if fits else 0]


def test_a_pod_without_requests_is_assumed_to_use_a_little() -> None:
    cluster = cluster_of(
        used("enough", [4000, 8192], [3990, 8176]),
        used("no-cpu", [4000, 8192], [3991, 0]),
        used("no-memory", [4000, 8192], [0, 8177]),
    )
    assert tens(made(PigeonHoling, cluster), pod("web"), cluster) == [10, 0, 0]


def test_without_annotations_the_requests_of_the_pods_are_the_usage() -> None:
    bare = [node(name).allocatable(cpu="4", memory="8Gi") for name in ("n1", "n2", "n3")]
    cluster = cluster_of(*bare, pod("a").requests(cpu="2").on("n2"), pod("b").requests(cpu="3").on("n3"))
    agent = made(PigeonHoling, cluster, policyObjective="LOAD_BALANCE")
    found = tens(agent, pod("web").requests(cpu="1"), cluster)
    assert found == sorted(found, reverse=True)
    assert (found[0], found[2]) == (10, 1)


def test_an_annotation_takes_precedence_over_the_known_pods() -> None:
    cluster = cluster_of(*P, pod("a").requests(cpu="4").on("n1"))
    agent = made(PigeonHoling, cluster, policyObjective="LOAD_BALANCE")
    assert tens(agent, asking([500, 1024]), cluster) == [10, 5, 1]


@pytest.mark.parametrize(
    ("allocated_at", "expected"),
    [("1970-01-01T00:10:00Z", [10, 5, 1]), ("1970-01-01T00:00:00Z", [1, 10, 10]), ("", [10, 5, 1])],
    ids=["fresh", "too old", "no time"],
)
def test_expired_annotations_are_replaced_by_the_known_pods(allocated_at: str, expected: list[int]) -> None:
    timed = [each.annotations(**{ALLOCATED_AT: allocated_at}) for each in P]
    cluster = cluster_of(*timed, pod("a").requests(cpu="2").on("n1"))
    agent = made(PigeonHoling, cluster, policyObjective="LOAD_BALANCE")
    cluster.measures.put({}, now=660.0)
    assert tens(agent, asking([500, 1024]), cluster) == expected


def test_annotations_of_nodes_without_known_pods_never_expire() -> None:
    cluster = cluster_of(*(each.annotations(**{ALLOCATED_AT: "1970-01-01T00:00:00Z"}) for each in P))
    agent = made(PigeonHoling, cluster, policyObjective="LOAD_BALANCE")
    cluster.measures.put({}, now=1e9)
    assert tens(agent, asking([500, 1024]), cluster) == [10, 5, 1]


def test_an_annotation_may_have_decimals_and_a_negative_one_counts_as_0() -> None:
    cluster = cluster_of(
        used("n1", [4000, 8192], [0, 0]).annotations(**{"requested-memory": "8589934592.0"}),
        used("n2", [4000, 8192], [0, 0]).annotations(**{"requested-memory": "-8589934592"}),
    )
    assert tens(made(PigeonHoling, cluster), asking([500, 1024]), cluster) == [0, 10]


def test_sidecars_and_overhead_count_as_demand() -> None:
    cluster = cluster_of(used("n1", [1000, 8192], [0, 0]))
    agent = made(PigeonHoling, cluster)
    web = pod("web").requests(cpu="500m").sidecar("proxy", cpu="300m")
    assert tens(agent, web.overhead(cpu="200m"), cluster) == [10]
    assert tens(agent, web.overhead(cpu="201m"), cluster) == [0]


def test_demand_counts_once_in_an_attempt() -> None:
    cluster = cluster_p()
    once, often = made(PigeonHoling, cluster), made(PigeonHoling, cluster)
    small, large = PodInfo.of(asking([100, 256])), PodInfo.of(asking([2000, 1024]))
    for agent, times in ((once, 1), (often, 5)):
        state = CycleState()
        for _ in range(times):
            agent.score(state, large, cluster.all_nodes())
    answers = [agent.score(CycleState(), small, cluster.all_nodes()).tolist() for agent in (once, often)]
    assert answers[0] == answers[1]


def test_a_cluster_without_nodes_has_no_scores() -> None:
    cluster = cluster_of()
    assert scores(made(PigeonHoling, cluster), pod("web"), cluster) == {}


def naive(objective: str, capacity: Any, usage: Any, demand: Any) -> list[float]:
    """Compute the objective for each candidate separately, over all nodes."""
    found = []
    for place in range(len(capacity)):
        share = [
            (used + demand * (place == other)) / offered
            for other, (offered, used) in enumerate(zip(capacity, usage, strict=True))
        ]
        mean = sum(share) / len(share)
        if objective == "LOAD_BALANCE":
            found.append((sum((u - mean) ** 2 for u in share) / len(share)) ** 0.5)
            continue
        apart = [(mean - u) / mean if u < mean else (u - mean) / (1 - mean) for u in share]
        inside = 0 < mean < 1
        found.append(1 - (sum(d * d for d in apart) / len(apart)) ** 0.5 if inside else 0.0)
    return found


@pytest.mark.parametrize("objective", ["LOAD_BALANCE", "CONSOLIDATE"])
def test_many_candidates_at_once_equal_one_by_one(objective: str) -> None:
    random = np.random.default_rng(7)
    for size in (1, 2, 3, 50):
        capacity = random.choice([2000.0, 4000.0, 16000.0], size)
        usage = np.floor(capacity * random.choice([0.0, 0.1, 0.5, 0.5, 0.9, 1.2], size))
        model = Model(capacity[np.newaxis], usage[np.newaxis], np.array([300.0]), DemandHistory(1))
        expected = naive(objective, capacity.tolist(), usage.tolist(), 300.0)
        assert OBJECTIVES[objective](model, 0).tolist() == pytest.approx(expected, abs=1e-9)


def written(tmp_path: Path, text: str) -> str:
    file = tmp_path / "pigeon.cfg"
    file.write_bytes(text.encode())
    return str(file)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# comment\n\npolicyObjective = LOAD_BALANCE\n", [10, 5, 1]),
        ("policyObjective =   CONSOLIDATE\npolicyResourceIndex = 1", [1, 5, 10]),
        ("", [10, 5, 1]),
    ],
)
def test_the_file_specifies_the_objective(tmp_path: Path, text: str, expected: list[int]) -> None:
    cluster = cluster_p()
    agent = made(PigeonHoling, cluster, configFile=written(tmp_path, text))
    assert tens(agent, asking([500, 1024]), cluster) == expected


@pytest.mark.parametrize("value", ["CONSOLIDATE ", "CONSOLIDATE\r", "consolidate", "", "PACK"])
def test_an_unknown_objective_in_the_file_means_adaptive_with_a_warning(tmp_path: Path, value: str) -> None:
    cluster = cluster_p()
    with structlog.testing.capture_logs() as logged:
        agent = made(PigeonHoling, cluster, configFile=written(tmp_path, f"policyObjective = {value}\n"))
    assert [line["objective"] for line in logged] == [value]
    assert tens(agent, asking([500, 1024]), cluster) == [10, 5, 1]


def test_arguments_take_precedence_over_the_file(tmp_path: Path) -> None:
    cluster = cluster_p()
    file = written(tmp_path, "policyObjective = LOAD_BALANCE\npolicyResourceIndex = 1\n")
    agent = made(PigeonHoling, cluster, configFile=file, policyObjective="CONSOLIDATE", policyResourceIndex=0)
    assert tens(agent, asking([500, 1024]), cluster) == [1, 5, 10]


def test_a_resource_that_is_not_considered_is_an_error(tmp_path: Path) -> None:
    file = written(tmp_path, "policyResourceIndex = 2\n")
    with pytest.raises(UserError, match=r"policyResourceIndex 2 is out of range .*cpu, memory.*lower it"):
        made(PigeonHoling, cluster_of(), configFile=file)
    assert made(PigeonHoling, cluster_of(), configFile=file, numResources=3)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read .*none\.cfg: No such file"):
        made(PigeonHoling, cluster_of(), configFile=str(tmp_path / "none.cfg"))


def test_the_environment_sets_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    environ = {"NUM_RESOURCES": "3", "POLICY_OBJECTIVE": "CONSOLIDATE"}
    assert PigeonHoling.environment(environ) == {"numResources": 3, "policyObjective": "CONSOLIDATE"}
    written(tmp_path, "policyObjective = LOAD_BALANCE\n")
    assert PigeonHoling.environment({}) == {"configFile": pigeon.CONFIG_FILE}


def test_an_invalid_environment_variable_is_ignored_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with structlog.testing.capture_logs() as logged:
        found = PigeonHoling.environment({"NUM_RESOURCES": "6", "POLICY_OBJECTIVE": "FIT_PACK"})
    assert found == {"policyObjective": "A_BINPACK"}
    assert [line["variable"] for line in logged] == ["NUM_RESOURCES", "POLICY_OBJECTIVE"]
