"""The names that plugin authors and drivers rely on: a change here is a change of the contract."""

import importlib

import pytest

PUBLIC = {
    "longshore.cluster": "CPU EPHEMERAL_STORAGE MEMORY PODS ClusterState PodInfo",
    "longshore.framework": (
        "MAX_SCORE Code Filter Plugin Profile Score Status TieBreak Verdict WeightedScore"
    ),
    "longshore.plugins": "NodeResourcesFit",
    "longshore.engine": (
        "Bind Conflict Done Effect Engine Event Failed Gone Outcome RecordEvent Request SetCondition "
        "Succeeded"
    ),
    "longshore.kube": (
        "NODES PODS ApiError Client Connection ConnectionFailed EventRecorder LeaderElector Patch Pool "
        "Reflector Resource Writer in_cluster load"
    ),
    "longshore.live": "Driver",
    "longshore.dev": "ControlPlane KubectlError",
    "longshore.sim": "Faults SimulatedCluster Simulation",
    "longshore.testing": "NodeBuilder PodBuilder node pod",
}


@pytest.mark.parametrize("package", PUBLIC)
def test_public_names_are_these_and_exist(package: str) -> None:
    module = importlib.import_module(package)
    assert sorted(module.__all__) == sorted(PUBLIC[package].split())
    assert all(hasattr(module, name) for name in module.__all__)
