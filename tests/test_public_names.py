"""The names that plugin authors and drivers rely on. A change here changes the contract."""

import importlib

import pytest

PUBLIC = {
    "longshore.cluster": (
        "CPU EPHEMERAL_STORAGE MEMORY PODS ClusterState Nodes OneNode PodInfo PodSelector Term Terms"
    ),
    "longshore.framework": (
        "MAX_SCORE SKIP Action ClusterEvent Code CycleState Factory Forced Handle NodeStatuses Plugin "
        "PostFilterResult Reads Rejection Resource Scope Status UndeclaredRead Wait WakeOn filter_plugin "
        "score_plugin"
    ),
    "longshore.plugins": (
        "DEFAULT_PLUGINS DefaultBinder DynamicResources Factory ImageLocality NodeAffinity "
        "NodeDeclaredFeatures NodeName NodePorts NodeResourcesBalancedAllocation NodeResourcesFit "
        "NodeUnschedulable PrioritySort SchedulingGates TaintToleration"
    ),
    "longshore.engine": (
        "Answered Bind Conflict CreateObject DeleteObject Done Effect Engine Event Evict Failed Gone "
        "Instruction Measurements Nominate Notice Outcome PatchObject RecordEvent Request Run "
        "SetCondition Succeeded"
    ),
    "longshore.kube": (
        "NODES PODS ApiError Client Connection ConnectionFailed EventRecorder LeaderElector Patch Pool "
        "Reflector Resource Writer in_cluster load"
    ),
    "longshore.live": "Follower",
    "longshore.dev": "ControlPlane KubectlError",
    "longshore.planning": "Assignment LeftOut Objective Plan Problem",
    "longshore.serve": "Health Metrics registry_of serving",
    "longshore.sim": "Faults Placed SimulatedCluster Simulation schedule",
    "longshore.testing": (
        "NodeBuilder PodBuilder csi_node namespace node pdb pod pv pvc replica_set replication_controller "
        "service stateful_set storage_class"
    ),
}


@pytest.mark.parametrize("package", PUBLIC)
def test_the_public_names_are_exactly_these_and_exist(package: str) -> None:
    module = importlib.import_module(package)
    assert sorted(module.__all__) == sorted(PUBLIC[package].split())
    assert all(hasattr(module, name) for name in module.__all__)
