"""Pods, with the fields that scheduling reads."""

import msgspec

from longshore.api.kept import KeptConditions, kept_condition
from longshore.api.meta import ApiObject, ApiStruct
from longshore.api.node import Taint
from longshore.api.selectors import LabelSelector
from longshore.api.volume import Volume


class ContainerPort(ApiStruct):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = ""


class ResourceRequirements(ApiStruct):
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}


class ContainerRestartRule(ApiStruct):
    action: str = ""


class Container(ApiStruct):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()


class NodeSelectorRequirement(ApiStruct):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(ApiStruct):
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(ApiStruct):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(ApiStruct):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(ApiStruct):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()


class PodAffinityTerm(ApiStruct):
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(ApiStruct):
    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(ApiStruct):
    """Affinity to pods, or anti-affinity: the two have the same fields."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class Affinity(ApiStruct):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(ApiStruct):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def tolerates(self, taint: Taint) -> bool:
        """Whether the toleration matches the taint. An empty effect or key matches all of them.

        The operators Lt and Gt are behind a feature gate that is off in Kubernetes 1.36.
        """
        if self.effect not in ("", taint.effect) or self.key not in ("", taint.key):
            return False
        return self.operator == "Exists" or (self.operator in ("", "Equal") and self.value == taint.value)


class TopologySpreadConstraint(ApiStruct):
    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class PodSchedulingGate(ApiStruct):
    name: str = ""


class PodResourceClaim(ApiStruct):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(ApiStruct):
    node_name: str = ""
    scheduler_name: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: dict[str, str] = {}
    resources: ResourceRequirements | None = None
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    priority: int = 0
    # Empty means PreemptLowerPriority.
    preemption_policy: str = ""
    host_network: bool = False
    host_users: bool | None = None
    volumes: tuple[Volume, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()


class PodCondition(ApiStruct):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0


class ContainerStatus(ApiStruct):
    """What the node has allocated to a container (allocated) and what is in effect now (resources)."""

    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: dict[str, str] = {}


class PodResourceClaimStatus(ApiStruct):
    name: str = ""
    resource_claim_name: str | None = None


class PodStatus(ApiStruct):
    phase: str = ""
    nominated_node_name: str = ""
    conditions: tuple[PodCondition, ...] = ()
    start_time: str | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: ResourceRequirements | None = None
    allocated_resources: dict[str, str] = {}
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()

    def condition(self, kind: str) -> PodCondition | None:
        """Return the condition of this type, or None. Raise UndeclaredRead if no plugin declares the type."""
        if isinstance(self.conditions, KeptConditions):
            self.conditions.names.check(kind)
        condition: PodCondition | None = kept_condition(self.conditions, kind)
        return condition


class Pod(ApiObject):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def terminal(self) -> bool:
        """Whether the pod has ended, and so no longer holds any resources."""
        return self.status.phase in ("Succeeded", "Failed")
