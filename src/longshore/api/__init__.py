"""Kubernetes objects with only the fields that scheduling reads.

The structs have the shape and the names of the JSON that the API server sends, in snake case, so one
definition serves JSON, protobuf and the tests:

    pod = msgspec.json.decode(body, type=Pod)
    pod.spec.containers[0].resources.requests["cpu"]    # "500m"

They are frozen: a new version of an object is a new struct, and equal parts may be shared between objects.
"""

from longshore.api.meta import Change, ObjectMeta
from longshore.api.node import Node, NodeCondition, NodeSpec, NodeStatus, Taint
from longshore.api.pod import (
    Affinity,
    Container,
    ContainerPort,
    LabelSelector,
    LabelSelectorRequirement,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodCondition,
    PodSchedulingGate,
    PodSpec,
    PodStatus,
    PreferredSchedulingTerm,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from longshore.api.quantity import InvalidQuantity, milli_value, value

__all__ = [
    "Affinity",
    "Change",
    "Container",
    "ContainerPort",
    "InvalidQuantity",
    "LabelSelector",
    "LabelSelectorRequirement",
    "Node",
    "NodeAffinity",
    "NodeCondition",
    "NodeSelector",
    "NodeSelectorRequirement",
    "NodeSelectorTerm",
    "NodeSpec",
    "NodeStatus",
    "ObjectMeta",
    "Pod",
    "PodAffinity",
    "PodAffinityTerm",
    "PodCondition",
    "PodSchedulingGate",
    "PodSpec",
    "PodStatus",
    "PreferredSchedulingTerm",
    "ResourceRequirements",
    "Taint",
    "Toleration",
    "TopologySpreadConstraint",
    "WeightedPodAffinityTerm",
    "milli_value",
    "value",
]
