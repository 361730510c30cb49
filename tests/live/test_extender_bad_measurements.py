"""A running `longshore extender` with a real Prometheus that answers with measurements, good and bad."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml
from tests.live.stock import Extender, World, loaded
from tests.measure.nodeload import GIB, TOTAL, Load, history, node_name, steady
from tests.serve.extenders import about_names

from longshore.agents.load import REASON_NO_MEASUREMENTS, Missing
from longshore.agents.safe import REASON_RISK
from longshore.dev.prometheus import MonitoredNodes
from longshore.testing import pod

pytestmark = pytest.mark.control_plane

WEB = pod("web").requests(cpu="500m", memory="1Gi")
CORES = 8.0
NAN = float("nan")
# The nodes with usable measurements: the idle one, and those that use 100 times their capacity.
# Prometheus takes a counter that falls for one that was reset, so its increase is far too large.
FULL = {"cpu-spike": "cpu", "cpu-negative": "cpu", "memory-spike": "memory"}
UNKNOWN = ("missing", "old", "nan", "memory-negative")
AGENTS = {
    "safe-overload": "SafeOverload",
    "safe-balance": "SafeBalance",
    "target-load-packing": "TargetLoadPacking",
    "load-variation-risk-balancing": "LoadVariationRiskBalancing",
    "low-risk-over-commitment": "LowRiskOverCommitment",
}
# A pod of 2 cores and 4 GiB is on each node, which has four times as much, and stands in for its load.
BY_REQUESTS = dict(zip(AGENTS, (10, 8, 9, 8, 10), strict=True))


def _spike(most: float, usual: float) -> Load:
    return lambda before_end: 100 * most if before_end < 60 else usual


@pytest.fixture(scope="module")
def names(prometheus: MonitoredNodes) -> dict[str, str]:
    """The names of nodes, by their measurements."""
    now = time.time()
    names = {word: node_name(word) for word in ("idle", *FULL, *UNKNOWN)}
    cores, memory = steady(1.0), steady(GIB)
    for word, until, cpu, ram in (
        ("idle", now, cores, memory),
        ("old", now - 600, cores, memory),
        ("nan", now, steady(NAN), steady(NAN)),
        ("memory-negative", now, None, steady(-3 * GIB)),
        ("cpu-negative", now, steady(-3.0), memory),
        ("cpu-spike", now, _spike(CORES, 1.0), memory),
        ("memory-spike", now, cores, _spike(TOTAL, GIB)),
    ):
        prometheus.put(history(names[word], until=until, cores=cpu, memory=ram))
    return names


@pytest.fixture(scope="module")
def world(stock_cluster: World, names: dict[str, str]) -> Iterator[World]:
    with stock_cluster.having(*map(loaded, names.values())) as made:
        made.api.create(
            *(made.named("there").requests(cpu="2", memory="4Gi").on(name) for name in names.values())
        )
        yield made


def _arguments(folder: Path, prometheus: MonitoredNodes, missing: Missing) -> Sequence[str]:
    """Return arguments with which pods appear in the measurements at once: loads are as stored."""
    measurements, agents = folder / "measurements.yaml", folder / "agents.yaml"
    said = {"provider": "prometheus", "address": prometheus.url, "settle": "0s"}
    measurements.write_text(yaml.safe_dump(said))
    agents.write_text(yaml.safe_dump({plugin: {"missing": missing} for plugin in AGENTS.values()}))
    return f"--measurements={measurements}", f"--agent-config={agents}"


def _scores(extender: Extender, verb: str, names: dict[str, str]) -> dict[str, int]:
    """Return the scores by the measurements of the node."""
    answer = extender.post(f"priorities/{verb}", about_names(WEB, list(names.values())))
    found = {each["Host"]: each["Score"] for each in answer}
    assert found.keys() == set(names.values())
    assert all(type(score) is int and 0 <= score <= 10 for score in found.values()), found
    return {word: found[name] for word, name in names.items()}


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ("Neutral", dict.fromkeys(AGENTS, 0)),
        ("FailOpen", dict.fromkeys(AGENTS, 5)),
        ("FailClosed", dict.fromkeys(AGENTS, 0)),
        ("Requests", BY_REQUESTS),
    ],
    ids=["Neutral", "FailOpen", "FailClosed", "Requests"],
)
def test_scores_stay_in_range_and_the_policy_applies_to_unknown_loads(
    world: World,
    prometheus: MonitoredNodes,
    names: dict[str, str],
    tmp_path: Path,
    missing: Missing,
    expected: dict[str, int],
) -> None:
    agents = "safe,target-load-packing,load-variation-risk-balancing,low-risk-over-commitment"
    with world.extender(agents, *_arguments(tmp_path, prometheus, missing)) as extender:
        filtered = extender.post("predicates/safe-overload", about_names(WEB, list(names.values())))
        scores = {verb: _scores(extender, verb, names) for verb in AGENTS}
        assert extender.stop() == 0
    refused = {**filtered["FailedNodes"], **filtered["FailedAndUnresolvableNodes"]}
    reasons = {
        names[word]: REASON_RISK.format(utilization=90, resource=resource, percentile=30)
        for word, resource in FULL.items()
    }
    if missing == "FailClosed":
        reasons |= {names[word]: REASON_NO_MEASUREMENTS for word in UNKNOWN}
    assert (filtered["Error"], refused) == ("", reasons)
    assert set(filtered["NodeNames"]) == set(names.values()) - reasons.keys()

    for verb, found in scores.items():
        assert {word: found[word] for word in UNKNOWN} == dict.fromkeys(UNKNOWN, expected[verb]), verb
        for word, resource in FULL.items():
            if verb == "target-load-packing" and resource == "memory":
                assert found[word] == found["idle"]  # it looks at the cpu alone
            else:
                assert found[word] < found["idle"], (verb, word, found)
