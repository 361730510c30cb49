"""A slow, plain scheduler: it looks at one pod and one node at a time, and remembers nothing.

It follows kube-scheduler's rules for the plugins that look at nodes and pods, and shares no code with ours
but the reading of quantities.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from longshore.api import (
    LabelSelector,
    Node,
    NodeSelectorTerm,
    Pod,
    PodAffinityTerm,
    Taint,
    TopologySpreadConstraint,
    milli_value,
    value,
)

Amounts = dict[str, int]

HOSTNAME = "kubernetes.io/hostname"
ASSUMED = {"cpu": 100, "memory": 200 * 2**20}
WEIGHTS = {"taints": 3, "affinity": 2, "fit": 1, "spread": 2, "pods": 2, "balance": 1}


def amount(resource: str, text: str) -> int:
    return milli_value(text) if resource == "cpu" else value(text)


def amounts(quantities: Mapping[str, str]) -> Amounts:
    return {resource: amount(resource, text) for resource, text in quantities.items()}


def add(total: Amounts, more: Amounts) -> Amounts:
    return {r: total.get(r, 0) + more.get(r, 0) for r in {*total, *more}}


def most(one: Amounts, other: Amounts) -> Amounts:
    return {r: max(one.get(r, 0), other.get(r, 0)) for r in {*one, *other}}


def asks_for(pod: Pod, *, missing: Amounts | None = None, whole: bool = True) -> Amounts:
    """`missing` counts for a container without a request. `whole`: include the requests of the pod itself."""
    absent = missing or {}
    running: Amounts = {}
    for container in pod.spec.containers:
        running = add(running, {**absent, **amounts(container.resources.requests)})
    peak: Amounts = {}
    sidecars: Amounts = {}
    for container in pod.spec.init_containers:
        own = {**absent, **amounts(container.resources.requests)}
        peak = most(peak, add(sidecars, own))
        if container.restart_policy == "Always":
            sidecars = add(sidecars, own)
            running = add(running, own)
    total = most(running, peak)
    if whole and pod.spec.resources is not None:
        total = {**total, **amounts(pod.spec.resources.requests)}
    return add(total, amounts(pod.spec.overhead))


def uses(pod: Pod, *, placed: bool) -> Amounts:
    """Return cpu and memory as scoring counts them, without the requests of an incoming pod itself."""
    missing = dict(ASSUMED)
    if placed and pod.spec.resources is not None and pod.spec.resources.requests:
        asked = asks_for(pod)
        missing = {r: use for r, use in ASSUMED.items() if r not in asked}
    return asks_for(pod, missing=missing, whole=placed)


def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    return selector is not None and all(labels.get(k) == v for k, v in selector.match_labels.items())


def tolerates(pod: Pod, taint: Taint, *, effects: tuple[str, ...] | None = None) -> bool:
    for toleration in pod.spec.tolerations:
        if effects is not None and toleration.effect not in effects:
            continue
        if toleration.effect not in ("", taint.effect):
            continue
        if toleration.key not in ("", taint.key):
            continue
        if toleration.operator == "Exists" or toleration.value == taint.value:
            return True
    return False


def matches(term: NodeSelectorTerm, node: Node) -> bool:
    for wanted in term.match_expressions:
        label = node.metadata.labels.get(wanted.key)
        if wanted.operator == "In" and label not in wanted.values:
            return False
        if wanted.operator == "NotIn" and label in wanted.values:
            return False
        if wanted.operator == "Exists" and label is None:
            return False
        if wanted.operator == "DoesNotExist" and label is not None:
            return False
    return True


def wants_node(pod: Pod, node: Node) -> bool:
    if any(node.metadata.labels.get(k) != v for k, v in pod.spec.node_selector.items()):
        return False
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return True
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    return required is None or any(matches(term, node) for term in required.node_selector_terms)


def ports(pod: Pod) -> list[tuple[str, str, int]]:
    return [
        (port.host_ip or "0.0.0.0", port.protocol, port.host_port)
        for container in pod.spec.containers
        for port in container.ports
    ]


def is_meant(term: PodAffinityTerm, owner: Pod, other: Pod) -> bool:
    namespaces = term.namespaces or (owner.metadata.namespace,)
    return other.metadata.namespace in namespaces and selects(term.label_selector, other.metadata.labels)


def required(pod: Pod, *, anti: bool) -> Iterable[PodAffinityTerm]:
    affinity = pod.spec.affinity
    side = None if affinity is None else affinity.pod_anti_affinity if anti else affinity.pod_affinity
    return () if side is None else side.required_during_scheduling_ignored_during_execution


def preferred(pod: Pod) -> Iterable[tuple[PodAffinityTerm, int]]:
    affinity = pod.spec.affinity
    for sign, side in (
        (1, affinity and affinity.pod_affinity),
        (-1, affinity and affinity.pod_anti_affinity),
    ):
        if side:
            for term in side.preferred_during_scheduling_ignored_during_execution:
                yield term.pod_affinity_term, sign * term.weight


@dataclass
class Reference:
    """The cluster, and the decision for a pod."""

    nodes: dict[str, Node] = field(default_factory=dict)
    # By key: the pod, and the node it is on.
    pods: dict[str, tuple[Pod, str]] = field(default_factory=dict)

    def on(self, node: Node) -> list[Pod]:
        return [pod for pod, name in self.pods.values() if name == node.metadata.name]

    def placed(self) -> Iterable[tuple[Pod, Node]]:
        """Return the pods whose node is known."""
        return [(pod, self.nodes[name]) for pod, name in self.pods.values() if name in self.nodes]

    def best(self, pod: Pod) -> set[str]:
        """Return the best nodes; empty if no node fits."""
        feasible = [node for node in self.nodes.values() if not self.reasons(pod, node)]
        if len(feasible) < 2:
            return {node.metadata.name for node in feasible}
        totals = self.totals(pod, feasible)
        return {name for name, total in totals.items() if total == max(totals.values())}

    def message(self, pod: Pod) -> str:
        if not self.nodes:
            return "no nodes available to schedule pods"
        counts = Counter(reason for node in self.nodes.values() for reason in self.reasons(pod, node))
        histogram = ", ".join(sorted(f"{number} {reason}" for reason, number in counts.items()))
        return f"0/{len(self.nodes)} nodes are available: {histogram}."

    # Filters: the reasons of the first one that refuses the node.

    def reasons(self, pod: Pod, node: Node) -> list[str]:
        filters: list[Callable[[Pod, Node], list[str]]] = [
            self.cordoned,
            self.tainted,
            self.unwanted,
            self.ports_taken,
            self.too_small,
            self.uneven,
            self.in_bad_company,
        ]
        return next((found for each in filters if (found := each(pod, node))), [])

    def cordoned(self, pod: Pod, node: Node) -> list[str]:
        taint = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
        return ["node(s) were unschedulable"] if node.spec.unschedulable and not tolerates(pod, taint) else []

    def tainted(self, pod: Pod, node: Node) -> list[str]:
        hard = [taint for taint in node.spec.taints if taint.effect in ("NoSchedule", "NoExecute")]
        return ["node(s) had untolerated taint(s)"] if any(not tolerates(pod, t) for t in hard) else []

    def unwanted(self, pod: Pod, node: Node) -> list[str]:
        return [] if wants_node(pod, node) else ["node(s) didn't match Pod's node affinity/selector"]

    def ports_taken(self, pod: Pod, node: Node) -> list[str]:
        for address, protocol, number in ports(pod):
            for other in self.on(node):
                for theirs in ports(other):
                    same_address = address == theirs[0] or "0.0.0.0" in (address, theirs[0])
                    if same_address and theirs[1:] == (protocol, number):
                        return ["node(s) didn't have free ports for the requested pod ports"]
        return []

    def too_small(self, pod: Pod, node: Node) -> list[str]:
        found = []
        offered = amounts(node.status.allocatable)
        if len(self.on(node)) + 1 > offered["pods"]:
            found.append("Too many pods")
        for resource, wanted in asks_for(pod).items():
            used = sum(asks_for(other).get(resource, 0) for other in self.on(node))
            if wanted and wanted > offered.get(resource, 0) - used:
                found.append(f"Insufficient {resource}")
        return found

    def uneven(self, pod: Pod, node: Node) -> list[str]:
        constraints = self.constraints(pod, "DoNotSchedule")
        for constraint in constraints:
            domain = node.metadata.labels.get(constraint.topology_key)
            if domain is None:
                return ["node(s) didn't match pod topology spread constraints (missing required label)"]
            counts = self.by_domain(pod, constraint, constraints, self.nodes.values())
            if not counts:
                continue
            myself = selects(constraint.label_selector, pod.metadata.labels)
            if counts.get(domain, 0) + myself - min(counts.values()) > constraint.max_skew:
                return ["node(s) didn't match pod topology spread constraints"]
        return []

    def in_bad_company(self, pod: Pod, node: Node) -> list[str]:
        labels = node.metadata.labels
        near = list(required(pod, anti=False))
        friends = [
            where for other, where in self.placed() if near and all(is_meant(t, pod, other) for t in near)
        ]
        pairs = {
            (term.topology_key, where.metadata.labels[term.topology_key])
            for where in friends
            for term in near
            if term.topology_key in where.metadata.labels
        }
        if any(term.topology_key not in labels for term in near):
            return ["node(s) didn't match pod affinity rules"]
        alone = not pairs and all(is_meant(term, pod, pod) for term in near)
        if not alone and any((t.topology_key, labels[t.topology_key]) not in pairs for t in near):
            return ["node(s) didn't match pod affinity rules"]
        for other, where in self.placed():
            if any(is_meant(t, pod, other) and together(t, node, where) for t in required(pod, anti=True)):
                return ["node(s) didn't match pod anti-affinity rules"]
        for other, where in self.placed():
            if any(is_meant(t, other, pod) and together(t, node, where) for t in required(other, anti=True)):
                return ["node(s) didn't satisfy existing pods anti-affinity rules"]
        return []

    # Spreading.

    def constraints(self, pod: Pod, kind: str) -> list[TopologySpreadConstraint]:
        return [c for c in pod.spec.topology_spread_constraints if c.when_unsatisfiable == kind]

    def by_domain(
        self,
        pod: Pod,
        constraint: TopologySpreadConstraint,
        constraints: list[TopologySpreadConstraint],
        nodes: Iterable[Node],
    ) -> dict[str, int]:
        counts: dict[str, int] = {}
        for node in nodes:
            labels = node.metadata.labels
            if all(c.topology_key in labels for c in constraints) and wants_node(pod, node):
                domain = labels[constraint.topology_key]
                counts[domain] = counts.get(domain, 0) + self.selected(pod, constraint, node)
        return counts

    def selected(self, pod: Pod, constraint: TopologySpreadConstraint, node: Node) -> int:
        # An empty selector counts no pod here, although it selects all.
        if constraint.label_selector is None or not constraint.label_selector.match_labels:
            return 0
        return sum(
            selects(constraint.label_selector, other.metadata.labels)
            for other in self.on(node)
            if other.metadata.namespace == pod.metadata.namespace and not other.metadata.deletion_timestamp
        )

    # Scores.

    def totals(self, pod: Pod, nodes: list[Node]) -> dict[str, int]:
        parts = {
            "taints": self.taint_scores(pod, nodes),
            "affinity": self.affinity_scores(pod, nodes),
            "fit": [self.free_share(pod, node) for node in nodes],
            "spread": self.spread_scores(pod, nodes),
            "pods": self.company_scores(pod, nodes),
            "balance": [self.balance_gain(pod, node) for node in nodes],
        }
        return {
            node.metadata.name: sum(WEIGHTS[part] * scores[place] for part, scores in parts.items())
            for place, node in enumerate(nodes)
        }

    def taint_scores(self, pod: Pod, nodes: list[Node]) -> list[int]:
        effects = ("", "PreferNoSchedule")
        raw = [
            sum(
                taint.effect == "PreferNoSchedule" and not tolerates(pod, taint, effects=effects)
                for taint in node.spec.taints
            )
            for node in nodes
        ]
        return [100 - 100 * score // max(raw) if max(raw) else 100 for score in raw]

    def affinity_scores(self, pod: Pod, nodes: list[Node]) -> list[int]:
        affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
        wishes = affinity.preferred_during_scheduling_ignored_during_execution if affinity else ()
        raw = [sum(wish.weight for wish in wishes if matches(wish.preference, node)) for node in nodes]
        return [100 * score // max(raw) if max(raw) else 0 for score in raw]

    def free_share(self, pod: Pod, node: Node) -> int:
        offered, mine = amounts(node.status.allocatable), uses(pod, placed=False)
        scores = []
        for resource in ("cpu", "memory"):
            capacity = offered.get(resource, 0)
            if capacity:
                theirs = sum(uses(other, placed=True).get(resource, 0) for other in self.on(node))
                free = capacity - theirs - mine.get(resource, 0)
                scores.append(max(free, 0) * 100 // capacity)
        return sum(scores) // len(scores) if scores else 0

    def balance_gain(self, pod: Pod, node: Node) -> int:
        asked = asks_for(pod)
        if not asked.get("cpu") and not asked.get("memory"):
            return 0
        offered = amounts(node.status.allocatable)

        def balance(more: Amounts) -> int:
            shares = []
            for resource in ("cpu", "memory"):
                capacity = offered.get(resource, 0)
                if capacity:
                    used = sum(asks_for(other).get(resource, 0) for other in self.on(node))
                    shares.append(min((used + more.get(resource, 0)) / capacity, 1.0))
            deviation = abs((shares[0] - shares[1]) / 2) if len(shares) == 2 else 0.0
            return int((1 - deviation) * 100)

        return 50 + (50 + balance(asked) - balance({})) // 2

    def spread_scores(self, pod: Pod, nodes: list[Node]) -> list[int]:
        constraints = self.constraints(pod, "ScheduleAnyway")
        if not constraints:
            return [0] * len(nodes)
        counted = [n for n in nodes if all(c.topology_key in n.metadata.labels for c in constraints)]
        raw: dict[str, int] = {}
        for node in counted:
            score = 0.0
            for constraint in constraints:
                key = constraint.topology_key
                domain = node.metadata.labels[key]
                if key == HOSTNAME:
                    size, count = len(counted), self.selected(pod, constraint, node)
                else:
                    size = len({n.metadata.labels[key] for n in counted})
                    everywhere = self.by_domain(pod, constraint, constraints, self.nodes.values())
                    count = everywhere.get(domain, 0)
                score += count * math.log(size + 2) + (constraint.max_skew - 1)
            raw[node.metadata.name] = math.floor(score + 0.5)
        highest, lowest = max(raw.values(), default=0), min(raw.values(), default=0)

        def normal(node: Node) -> int:
            if node.metadata.name not in raw:
                return 0
            score = raw[node.metadata.name]
            return 100 * (highest + lowest - score) // highest if highest else 100

        return [normal(node) for node in nodes]

    def company_scores(self, pod: Pod, nodes: list[Node]) -> list[int]:
        pairs: Counter[tuple[str, str]] = Counter()
        for other, where in self.placed():
            weights = [(term, w) for term, w in preferred(pod) if is_meant(term, pod, other)]
            weights += [(term, w) for term, w in preferred(other) if is_meant(term, other, pod)]
            weights += [(term, 1) for term in required(other, anti=False) if is_meant(term, other, pod)]
            for term, weight in weights:
                if term.topology_key in where.metadata.labels:
                    pairs[term.topology_key, where.metadata.labels[term.topology_key]] += weight
        raw = [sum(w for (k, v), w in pairs.items() if n.metadata.labels.get(k) == v) for n in nodes]
        reach = max(raw) - min(raw)
        return [int(100 * ((score - min(raw)) / reach)) if reach else 0 for score in raw]


def together(term: PodAffinityTerm, one: Node, other: Node) -> bool:
    """Whether the nodes are in the same domain of the term's topology."""
    domain = one.metadata.labels.get(term.topology_key)
    return domain is not None and domain == other.metadata.labels.get(term.topology_key)
