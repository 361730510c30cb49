"""The arguments of the default plugins (`pluginConfig`), with kube-scheduler's defaults and limits."""

from collections.abc import Callable, Mapping
from typing import Literal, get_args

from longshore.api import NodeAffinity, TopologySpreadConstraint
from longshore.api.names import is_qualified_name
from longshore.config.affinity import read_default_constraint, read_node_affinity
from longshore.config.base import API_VERSION, Settings
from longshore.config.fields import INT64_MAX, Fields
from longshore.config.problems import quoted

_RESOURCE = "the name of a resource such as cpu or example.com/gpu"
_GROUP = "the domain of resources such as example.com"
_Strategy = Literal["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"]
_Defaulting = Literal["System", "List"]
_STRATEGIES: tuple[_Strategy, ...] = get_args(_Strategy)
_DEFAULTINGS: tuple[_Defaulting, ...] = get_args(_Defaulting)
_HIGHEST_SHAPE_SCORE = 10


class ResourceSpec(Settings):
    name: str
    weight: int = 1


_CPU_AND_MEMORY = (ResourceSpec("cpu"), ResourceSpec("memory"))


class ShapePoint(Settings):
    """The score, from 0 to 10, of a node with this utilization in percent."""

    utilization: int
    score: int


class ScoringStrategy(Settings):
    type: _Strategy = "LeastAllocated"
    resources: tuple[ResourceSpec, ...] = _CPU_AND_MEMORY
    # RequestedToCapacityRatio needs a shape, and no other type has one.
    shape: tuple[ShapePoint, ...] = ()


class DefaultPreemptionArgs(Settings):
    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100


class DynamicResourcesArgs(Settings):
    """Durations are in seconds. A filter timeout of 0 means no limit."""

    filter_timeout: float = 10.0
    binding_timeout: float = 600.0


class InterPodAffinityArgs(Settings):
    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class NodeAffinityArgs(Settings):
    added_affinity: NodeAffinity | None = None


class NodeResourcesBalancedAllocationArgs(Settings):
    resources: tuple[ResourceSpec, ...] = _CPU_AND_MEMORY


class NodeResourcesFitArgs(Settings):
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy()


class PodTopologySpreadArgs(Settings):
    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: _Defaulting = "System"


class VolumeBindingArgs(Settings):
    bind_timeout_seconds: int = 600


# The arguments of a plugin that is not kube-scheduler's are the mapping in the file.
PluginArgs = (
    DefaultPreemptionArgs
    | DynamicResourcesArgs
    | InterPodAffinityArgs
    | NodeAffinityArgs
    | NodeResourcesBalancedAllocationArgs
    | NodeResourcesFitArgs
    | PodTopologySpreadArgs
    | VolumeBindingArgs
    | Mapping[str, object]
)

DEFAULT_ARGS: Mapping[str, PluginArgs] = {
    "DefaultPreemption": DefaultPreemptionArgs(),
    "DynamicResources": DynamicResourcesArgs(),
    "InterPodAffinity": InterPodAffinityArgs(),
    "NodeAffinity": NodeAffinityArgs(),
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs(),
    "NodeResourcesFit": NodeResourcesFitArgs(),
    "PodTopologySpread": PodTopologySpreadArgs(),
    "VolumeBinding": VolumeBindingArgs(),
}


def _default_preemption(fields: Fields) -> DefaultPreemptionArgs:
    args = DefaultPreemptionArgs(
        fields.integer("minCandidateNodesPercentage", 10, at_least=0, at_most=100),
        fields.integer("minCandidateNodesAbsolute", 100, at_least=0),
    )
    if not args.min_candidate_nodes_percentage and not args.min_candidate_nodes_absolute:
        fields.problem("minCandidateNodesAbsolute", "must not be 0 if minCandidateNodesPercentage is 0 too")
    return args


def _dynamic_resources(fields: Fields) -> DynamicResourcesArgs:
    args = DynamicResourcesArgs(
        fields.duration("filterTimeout", 10.0), fields.duration("bindingTimeout", 600.0)
    )
    if args.filter_timeout < 0:
        fields.problem("filterTimeout", "must not be negative; 0s means no limit")
    if args.binding_timeout < 1:
        fields.problem("bindingTimeout", "must be at least 1s")
    return args


def _inter_pod_affinity(fields: Fields) -> InterPodAffinityArgs:
    return InterPodAffinityArgs(
        fields.integer("hardPodAffinityWeight", 1, at_least=0, at_most=100),
        fields.flag("ignorePreferredTermsOfExistingPods"),
    )


def _node_affinity(fields: Fields) -> NodeAffinityArgs:
    return NodeAffinityArgs(fields.optional("addedAffinity", read_node_affinity))


def _balanced_allocation(fields: Fields) -> NodeResourcesBalancedAllocationArgs:
    seen: set[str] = set()

    def resource(item: Fields) -> ResourceSpec:
        spec = _resource(item, highest=1)
        if spec.name and spec.name in seen:
            item.problem("name", f"{quoted(spec.name)} is already listed; keep one of them")
        seen.add(spec.name)
        return spec

    return NodeResourcesBalancedAllocationArgs(fields.each("resources", resource) or _CPU_AND_MEMORY)


def _fit(fields: Fields) -> NodeResourcesFitArgs:
    ignored = fields.texts("ignoredResources", _RESOURCE, is_qualified_name)
    groups = fields.texts(
        "ignoredResourceGroups", _GROUP, lambda group: "/" not in group and is_qualified_name(group)
    )
    strategy = fields.optional("scoringStrategy", _strategy)
    return NodeResourcesFitArgs(ignored, groups, strategy or ScoringStrategy())


def _strategy(fields: Fields) -> ScoringStrategy:
    kind = fields.needed_choice("type", _STRATEGIES)
    resources = fields.each("resources", lambda item: _resource(item, highest=100)) or _CPU_AND_MEMORY
    ratio = fields.optional("requestedToCapacityRatio", _ratio)
    if kind == "RequestedToCapacityRatio" and not fields.given("requestedToCapacityRatio"):
        fields.problem("requestedToCapacityRatio", f"missing; {kind} needs its shape")
    elif kind and kind != "RequestedToCapacityRatio" and ratio is not None:
        fields.problem(
            "requestedToCapacityRatio", f"belongs to RequestedToCapacityRatio, not to {kind}; remove it"
        )
    return ScoringStrategy(kind or "LeastAllocated", resources, ratio or ())


def _ratio(fields: Fields) -> tuple[ShapePoint, ...]:
    shape = fields.each("shape", _shape_point)
    if not shape and not fields.given("shape"):
        fields.problem("shape", "missing; it needs at least one point, such as {utilization: 100, score: 10}")
    for index in range(1, len(shape)):
        if shape[index - 1].utilization >= shape[index].utilization:
            fields.problem("shape", "the utilization must be above that of the point before", item=index)
            break
    return shape


def _shape_point(fields: Fields) -> ShapePoint:
    return ShapePoint(
        fields.integer("utilization", at_least=0, at_most=100),
        fields.integer("score", at_least=0, at_most=_HIGHEST_SHAPE_SCORE),
    )


def _resource(fields: Fields, *, highest: int) -> ResourceSpec:
    name = fields.needed_text("name", _RESOURCE)
    # As in kube-scheduler, a weight of 0 counts as left out.
    return ResourceSpec(name, fields.integer("weight", 1, at_least=0, at_most=highest) or 1)


def _pod_topology_spread(fields: Fields) -> PodTopologySpreadArgs:
    constraints = fields.each("defaultConstraints", read_default_constraint)
    kind = fields.choice("defaultingType", _DEFAULTINGS) or "System"
    if constraints and kind == "System":
        fields.problem("defaultingType", "must be List when there are defaultConstraints")
    seen: dict[tuple[str, str], int] = {}
    for index, constraint in enumerate(constraints):
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        if all(pair) and pair in seen:
            same = f"has the topologyKey and whenUnsatisfiable of [{seen[pair]}]; keep one of them"
            fields.problem("defaultConstraints", same, item=index)
        seen.setdefault(pair, index)
    return PodTopologySpreadArgs(constraints, kind)


def _volume_binding(fields: Fields) -> VolumeBindingArgs:
    fields.refuse("shape", "belongs to StorageCapacityScoring, an alpha feature that is off; remove it")
    return VolumeBindingArgs(fields.integer("bindTimeoutSeconds", 600, at_least=0, at_most=INT64_MAX))


_READERS: Mapping[str, Callable[[Fields], PluginArgs]] = {
    "DefaultPreemption": _default_preemption,
    "DynamicResources": _dynamic_resources,
    "InterPodAffinity": _inter_pod_affinity,
    "NodeAffinity": _node_affinity,
    "NodeResourcesBalancedAllocation": _balanced_allocation,
    "NodeResourcesFit": _fit,
    "PodTopologySpread": _pod_topology_spread,
    "VolumeBinding": _volume_binding,
}


def read_arguments(name: str, fields: Fields) -> PluginArgs:
    """Read the arguments of a default plugin. They may have an apiVersion and a kind, which must be right."""
    for field, wanted in (("apiVersion", API_VERSION), ("kind", f"{name}Args")):
        said = fields.text(field, wanted)
        if said != wanted:
            fields.problem(field, f"must be {wanted}, found {quoted(said)}")
    return _READERS[name](fields)
