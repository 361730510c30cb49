"""The arguments of the default plugins: defaults and real examples."""

from typing import TypeVar

import pytest
from tests.config.configurations import configuration, profile

from longshore.api import (
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    TopologySpreadConstraint,
)
from longshore.config import (
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    ScoringStrategy,
    ShapePoint,
    VolumeBindingArgs,
)

T = TypeVar("T")


def read(name: str, args: str, kind: type[T]) -> T:
    result = profile(f"pluginConfig: [{{name: {name}, args: {args}}}]").args[name]
    assert isinstance(result, kind)
    return result


def test_every_plugin_with_arguments_has_its_defaults() -> None:
    cpu_and_memory = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))
    assert configuration("").profiles[0].args == {
        "DefaultPreemption": DefaultPreemptionArgs(10, 100),
        "DynamicResources": DynamicResourcesArgs(10.0, 600.0),
        "InterPodAffinity": InterPodAffinityArgs(1, False),
        "NodeAffinity": NodeAffinityArgs(None),
        "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs(cpu_and_memory),
        "NodeResourcesFit": NodeResourcesFitArgs((), (), ScoringStrategy("LeastAllocated", cpu_and_memory)),
        "PodTopologySpread": PodTopologySpreadArgs((), "System"),
        "VolumeBinding": VolumeBindingArgs(600),
    }


@pytest.mark.parametrize("args", ["{}", "null", "{apiVersion: kubescheduler.config.k8s.io/v1}"])
def test_empty_arguments_are_the_defaults(args: str) -> None:
    assert read("NodeResourcesFit", args, NodeResourcesFitArgs) == NodeResourcesFitArgs()


def test_most_allocated_with_weights_of_resources_is_read() -> None:
    fit = read(
        "NodeResourcesFit",
        """{scoringStrategy: {
          type: MostAllocated, resources: [{name: cpu, weight: 3}, {name: nvidia.com/gpu}]}}""",
        NodeResourcesFitArgs,
    )
    resources = (ResourceSpec("cpu", 3), ResourceSpec("nvidia.com/gpu", 1))
    assert fit.scoring_strategy == ScoringStrategy("MostAllocated", resources)


def test_a_custom_shape_of_requested_to_capacity_ratio_is_read() -> None:
    fit = read(
        "NodeResourcesFit",
        """{
          ignoredResources: [example.com/foo],
          ignoredResourceGroups: [example.org],
          scoringStrategy: {
            type: RequestedToCapacityRatio,
            requestedToCapacityRatio: {
              shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}}}""",
        NodeResourcesFitArgs,
    )
    assert fit.ignored_resources == ("example.com/foo",)
    assert fit.ignored_resource_groups == ("example.org",)
    assert fit.scoring_strategy.shape == (ShapePoint(0, 0), ShapePoint(100, 10))


def test_weight_0_of_a_resource_means_1() -> None:
    fit = read(
        "NodeResourcesFit",
        "{scoringStrategy: {type: LeastAllocated, resources: [{name: cpu, weight: 0}]}}",
        NodeResourcesFitArgs,
    )
    assert fit.scoring_strategy.resources == (ResourceSpec("cpu", 1),)


def test_added_affinity_is_node_affinity() -> None:
    args = read(
        "NodeAffinity",
        """{addedAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
            {matchExpressions: [
              {key: pool, operator: In, values: [a, b]}, {key: cores, operator: Gt, values: ["8"]}]},
            {matchFields: [{key: metadata.name, operator: NotIn, values: [n1]}]}]},
          preferredDuringSchedulingIgnoredDuringExecution: [
            {weight: 5, preference: {matchExpressions: [{key: ssd, operator: Exists}]}}]}}""",
        NodeAffinityArgs,
    )
    pool = NodeSelectorRequirement(key="pool", operator="In", values=("a", "b"))
    cores = NodeSelectorRequirement(key="cores", operator="Gt", values=("8",))
    other = NodeSelectorRequirement(key="metadata.name", operator="NotIn", values=("n1",))
    ssd = NodeSelectorRequirement(key="ssd", operator="Exists")
    assert args.added_affinity == NodeAffinity(
        required_during_scheduling_ignored_during_execution=NodeSelector(
            node_selector_terms=(
                NodeSelectorTerm(match_expressions=(pool, cores)),
                NodeSelectorTerm(match_fields=(other,)),
            )
        ),
        preferred_during_scheduling_ignored_during_execution=(
            PreferredSchedulingTerm(weight=5, preference=NodeSelectorTerm(match_expressions=(ssd,))),
        ),
    )


def test_default_constraints_are_spread_constraints() -> None:
    args = read(
        "PodTopologySpread",
        """{defaultingType: List, defaultConstraints: [
          {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway},
          {maxSkew: 2, topologyKey: rack, whenUnsatisfiable: DoNotSchedule, minDomains: 3,
           nodeTaintsPolicy: Honor}]}""",
        PodTopologySpreadArgs,
    )
    assert args.default_constraints == (
        TopologySpreadConstraint(
            max_skew=1, topology_key="topology.kubernetes.io/zone", when_unsatisfiable="ScheduleAnyway"
        ),
        TopologySpreadConstraint(
            max_skew=2,
            topology_key="rack",
            when_unsatisfiable="DoNotSchedule",
            min_domains=3,
            node_taints_policy="Honor",
        ),
    )


def test_numbers_and_flags_of_the_other_plugins() -> None:
    assert read(
        "DefaultPreemption",
        "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 5}",
        DefaultPreemptionArgs,
    ) == DefaultPreemptionArgs(0, 5)
    assert read(
        "InterPodAffinity",
        "{hardPodAffinityWeight: 0, ignorePreferredTermsOfExistingPods: true}",
        InterPodAffinityArgs,
    ) == InterPodAffinityArgs(0, True)
    assert read("VolumeBinding", "{bindTimeoutSeconds: 0}", VolumeBindingArgs) == VolumeBindingArgs(0)
    assert read(
        "DynamicResources", "{filterTimeout: 0s, bindingTimeout: 1m30s}", DynamicResourcesArgs
    ) == DynamicResourcesArgs(0.0, 90.0)
    assert read(
        "NodeResourcesBalancedAllocation",
        "{resources: [{name: cpu}]}",
        NodeResourcesBalancedAllocationArgs,
    ) == NodeResourcesBalancedAllocationArgs((ResourceSpec("cpu", 1),))


def test_arguments_of_a_custom_plugin_are_passed_on_unchanged() -> None:
    assert profile("pluginConfig: [{name: Ours, args: {speed: [1, {a: b}]}}]").args["Ours"] == {
        "speed": [1, {"a": "b"}]
    }
