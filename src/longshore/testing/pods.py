"""Pods for tests."""

from collections.abc import Mapping
from typing import Self

from longshore.api import (
    Affinity,
    Container,
    ContainerPort,
    ContainerStatus,
    EphemeralVolumeSource,
    ImageVolumeSource,
    LabelSelector,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PersistentVolumeClaimVolumeSource,
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
    Volume,
    WeightedPodAffinityTerm,
)
from longshore.testing.metadata import MetadataBuilder, metadata, replace


class PodBuilder(MetadataBuilder, Pod):
    """A pod whose methods return changed copies."""

    def requests(self, **requests: str) -> Self:
        """Set the requests of the first container. Names with a domain: `**{"nvidia.com/gpu": "1"}`."""
        return self._with_first(resources=replace(self.spec.containers[0].resources, requests=requests))

    def limits(self, **limits: str) -> Self:
        """Set the limits of the first container."""
        return self._with_first(resources=replace(self.spec.containers[0].resources, limits=limits))

    def image(self, name: str) -> Self:
        """Set the image of the first container."""
        return self._with_first(image=name)

    def host_port(self, port: int, *, ip: str = "", protocol: str = "TCP") -> Self:
        """Add a host port to the first container."""
        added = ContainerPort(container_port=port, host_port=port, host_ip=ip, protocol=protocol)
        return self._with_first(ports=(*self.spec.containers[0].ports, added))

    def container(self, name: str, **requests: str) -> Self:
        """Add a container."""
        return self._with(containers=(*self.spec.containers, _container(name, requests)))

    def init_container(self, name: str, **requests: str) -> Self:
        """Add an init container, which must end before the others start."""
        return self._with(init_containers=(*self.spec.init_containers, _container(name, requests)))

    def sidecar(self, name: str, **requests: str) -> Self:
        """Add a sidecar, which starts before the other containers and keeps running."""
        sidecar = replace(_container(name, requests), restart_policy="Always")
        return self._with(init_containers=(*self.spec.init_containers, sidecar))

    def pod_requests(self, **requests: str) -> Self:
        """Set the pod-level requests."""
        return self._with(resources=ResourceRequirements(requests=requests))

    def overhead(self, **overhead: str) -> Self:
        return self._with(overhead=overhead)

    def scheduler(self, name: str) -> Self:
        return self._with(scheduler_name=name)

    def priority(self, priority: int) -> Self:
        return self._with(priority=priority)

    def never_preempting(self) -> Self:
        """Set the preemption policy to Never: no other pod is evicted for this one."""
        return self._with(preemption_policy="Never")

    def gates(self, *names: str) -> Self:
        return self._with(scheduling_gates=tuple(PodSchedulingGate(name=name) for name in names))

    def host_network(self) -> Self:
        return self._with(host_network=True)

    def node_selector(self, **labels: str) -> Self:
        return self._with(node_selector={**self.spec.node_selector, **labels})

    def tolerate(
        self, key: str = "", value: str = "", *, effect: str = "", seconds: int | None = None
    ) -> Self:
        """Add a toleration: for one value if it is given, else for any; without a key, for all taints."""
        operator = "Equal" if value else "Exists"
        toleration = Toleration(key, operator, value, effect, seconds)
        return self._with(tolerations=(*self.spec.tolerations, toleration))

    def node_affinity(self, key: str, operator: str, *values: str, preferred: int | None = None) -> Self:
        """Add a requirement for the labels of the node or, if `preferred` is its weight, a preference."""
        requirement = NodeSelectorRequirement(key, operator, values)
        now = self._affinity.node_affinity or NodeAffinity()
        if preferred is not None:
            added = PreferredSchedulingTerm(preferred, NodeSelectorTerm((requirement,)))
            terms = (*now.preferred_during_scheduling_ignored_during_execution, added)
            return self._with_node_affinity(preferred_during_scheduling_ignored_during_execution=terms)
        required = now.required_during_scheduling_ignored_during_execution
        [term] = required.node_selector_terms if required is not None else (NodeSelectorTerm(),)
        term = replace(term, match_expressions=(*term.match_expressions, requirement))
        return self._with_node_affinity(
            required_during_scheduling_ignored_during_execution=NodeSelector((term,))
        )

    def only_on(self, node: str) -> Self:
        """Require the node with this name, as the pods of a DaemonSet do."""
        field = NodeSelectorRequirement("metadata.name", "In", (node,))
        return self._with_node_affinity(
            required_during_scheduling_ignored_during_execution=NodeSelector(
                (NodeSelectorTerm(match_fields=(field,)),)
            )
        )

    def affinity_to(
        self,
        topology_key: str,
        *,
        preferred: int | None = None,
        namespaces: tuple[str, ...] = (),
        namespace_labels: Mapping[str, str] | None = None,
        **labels: str,
    ) -> Self:
        """Require the domain of pods with these labels or, if `preferred` is a weight, prefer it."""
        term = _affinity_term(topology_key, namespaces, namespace_labels, labels)
        affinity = self._affinity
        return self._with(
            affinity=replace(affinity, pod_affinity=_one_more(affinity.pod_affinity, term, preferred))
        )

    def anti_affinity_to(
        self,
        topology_key: str,
        *,
        preferred: int | None = None,
        namespaces: tuple[str, ...] = (),
        namespace_labels: Mapping[str, str] | None = None,
        **labels: str,
    ) -> Self:
        """Exclude the domains of pods with these labels or, if `preferred` is a weight, avoid them."""
        term = _affinity_term(topology_key, namespaces, namespace_labels, labels)
        affinity = self._affinity
        anti_affinity = _one_more(affinity.pod_anti_affinity, term, preferred)
        return self._with(affinity=replace(affinity, pod_anti_affinity=anti_affinity))

    def spread(
        self,
        topology_key: str,
        *,
        max_skew: int = 1,
        hard: bool = True,
        min_domains: int | None = None,
        **labels: str,
    ) -> Self:
        """Add a constraint: pods with these labels are spread evenly over the topology."""
        constraint = TopologySpreadConstraint(
            max_skew=max_skew,
            topology_key=topology_key,
            when_unsatisfiable="DoNotSchedule" if hard else "ScheduleAnyway",
            label_selector=LabelSelector(labels),
            min_domains=min_domains,
        )
        return self._with(topology_spread_constraints=(*self.spec.topology_spread_constraints, constraint))

    def claim(self, name: str, *, read_only: bool = False) -> Self:
        """Add a volume from the claim with this name."""
        return self.volume(
            Volume(name, persistent_volume_claim=PersistentVolumeClaimVolumeSource(name, read_only))
        )

    def ephemeral_claim(self, volume: str) -> Self:
        """Add an ephemeral volume, whose claim is created for this pod alone."""
        return self.volume(Volume(volume, ephemeral=EphemeralVolumeSource()))

    def image_volume(self, reference: str) -> Self:
        """Add a volume with the content of an image."""
        name = f"image-{len(self.spec.volumes)}"
        return self.volume(Volume(name, image=ImageVolumeSource(reference)))

    def volume(self, volume: Volume) -> Self:
        """Add a volume from any source."""
        return self._with(volumes=(*self.spec.volumes, volume))

    def on(self, node: str) -> Self:
        """Bind the pod to the node."""
        return self._with(node_name=node)

    def nominated(self, node: str) -> Self:
        """Nominate the pod to the node."""
        return self._with_status(nominated_node_name=node)

    def phase(self, phase: str) -> Self:
        return self._with_status(phase=phase)

    def started(self, timestamp: str) -> Self:
        return self._with_status(start_time=timestamp)

    def condition(self, type: str, status: str, *, reason: str = "", message: str = "") -> Self:  # noqa: A002
        """Add a condition."""
        condition = PodCondition(type=type, status=status, reason=reason, message=message)
        return self._with_status(conditions=(*self.status.conditions, condition))

    def holding(
        self, container: str, granted: Mapping[str, str], *, actual: Mapping[str, str] | None = None
    ) -> Self:
        """Set what the node has allocated to a container, and what is in effect if that is different."""
        resources = ResourceRequirements(requests=dict(granted if actual is None else actual))
        status = ContainerStatus(container, resources, dict(granted))
        if any(container == each.name for each in self.spec.init_containers):
            return self._with_status(init_container_statuses=(*self.status.init_container_statuses, status))
        return self._with_status(container_statuses=(*self.status.container_statuses, status))

    @property
    def _affinity(self) -> Affinity:
        return self.spec.affinity or Affinity()

    def _with_node_affinity(self, **fields: object) -> Self:
        changed = replace(self._affinity.node_affinity or NodeAffinity(), **fields)
        return self._with(affinity=replace(self._affinity, node_affinity=changed))

    def _with_first(self, **fields: object) -> Self:
        first, *others = self.spec.containers
        return self._with(containers=(replace(first, **fields), *others))

    def _with(self, **fields: object) -> Self:
        return replace(self, spec=replace(self.spec, **fields))

    def _with_status(self, **fields: object) -> Self:
        return replace(self, status=replace(self.status, **fields))


def pod(name: str, *, namespace: str = "default") -> PodBuilder:
    """Return a pending pod with one container."""
    return PodBuilder(
        metadata=metadata(name, namespace),
        spec=PodSpec(scheduler_name="longshore", containers=(Container(name="main"),)),
        status=PodStatus(phase="Pending"),
    )


def _container(name: str, requests: dict[str, str]) -> Container:
    return Container(name=name, resources=ResourceRequirements(requests=requests))


def _affinity_term(
    topology_key: str,
    namespaces: tuple[str, ...],
    namespace_labels: Mapping[str, str] | None,
    labels: dict[str, str],
) -> PodAffinityTerm:
    return PodAffinityTerm(
        label_selector=LabelSelector(labels),
        namespaces=namespaces,
        topology_key=topology_key,
        namespace_selector=None if namespace_labels is None else LabelSelector(dict(namespace_labels)),
    )


def _one_more(affinity: PodAffinity | None, term: PodAffinityTerm, preferred: int | None) -> PodAffinity:
    now = affinity or PodAffinity()
    if preferred is None:
        required = (*now.required_during_scheduling_ignored_during_execution, term)
        return replace(now, required_during_scheduling_ignored_during_execution=required)
    weighted = WeightedPodAffinityTerm(preferred, term)
    terms = (*now.preferred_during_scheduling_ignored_during_execution, weighted)
    return replace(now, preferred_during_scheduling_ignored_during_execution=terms)
