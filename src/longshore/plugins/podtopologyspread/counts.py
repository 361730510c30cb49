"""The number of matching pods in each domain of a constraint, also with changes of a dry run.

Which nodes count for a constraint depends only on the nodes and the pod. It is computed once for all pods of
a shape, and again when a node changes. An attempt only has to sum up.
"""

from collections.abc import Iterable

import msgspec
import numpy as np

from longshore.api import Node, Pod, Service, TopologySpreadConstraint, selects
from longshore.cluster import ClusterState, Nodes
from longshore.cluster.arrays import Bools, Ints
from longshore.cluster.domains import Domains
from longshore.cluster.labels import ABSENT
from longshore.plugins.podtopologyspread.constraints import (
    Constraint,
    ServiceSelectors,
    default_constraints,
    own_constraints,
    owner_of,
)
from longshore.plugins.tainttoleration import tolerates


class Spread(msgspec.Struct, frozen=True, gc=False):
    """A constraint with its domains as they are now."""

    constraint: Constraint
    domains: Domains

    def by_row(self, cluster: ClusterState) -> Ints | None:
        """Return how many matching pods are on each row, or None if there are none."""
        pods = self.constraint.pods
        tally = None if pods is None else cluster.pod_counts.pods(pods)
        return tally.by_row if tally is not None and tally.total else None

    def sums(self, cluster: ClusterState) -> Ints:
        """Return how many matching pods are in each domain."""
        by_row = self.by_row(cluster)
        return np.zeros(self.domains.outside + 1, np.int64) if by_row is None else self.domains.sums(by_row)


class Spreads:
    """The hard or the soft constraints (`action`) of all pods of a shape, updated with the cluster.

    With `all_keys`, only nodes that have the keys of all constraints count. Raises `InvalidSelector`.
    """

    def __init__(
        self, pod: Pod, action: str, defaults: Iterable[TopologySpreadConstraint], *, all_keys: bool
    ) -> None:
        own = pod.spec.topology_spread_constraints
        self._constraints = own_constraints(pod, action)
        self._defaults = () if own else tuple(d for d in defaults if d.when_unsatisfiable == action)
        self._all_keys = all_keys
        # What the constraints and the domains were made from.
        self._services_seen: tuple[ClusterState, int] | None = None
        self._services: dict[str, str] = {}
        self._owner: object = None
        self._nodes_seen: tuple[ClusterState, int] | None = None
        self._spreads: tuple[Spread, ...] = ()

    def current(self, pod: Pod, cluster: ClusterState, services: ServiceSelectors) -> tuple[Spread, ...]:
        if self._defaults:
            self._follow(pod, cluster, services)
        if not self._constraints:
            return ()
        seen = (cluster, cluster.version(Node))
        if seen != self._nodes_seen:
            self._nodes_seen = seen
            self._spreads = tuple(
                Spread(c, cluster.domains.of(c.topology_key, self._counting(c, pod, cluster)))
                for c in self._constraints
            )
        return self._spreads

    def _follow(self, pod: Pod, cluster: ClusterState, services: ServiceSelectors) -> None:
        seen, owner = (cluster, cluster.version(Service)), owner_of(pod, cluster)
        if seen == self._services_seen and owner is self._owner:
            return
        if seen != self._services_seen:
            self._services = services.about(pod, cluster)
        self._services_seen, self._owner = seen, owner
        constraints = default_constraints(pod, self._defaults, self._services, owner)
        if constraints != self._constraints:
            self._constraints = constraints
            self._nodes_seen = None

    def _counting(self, constraint: Constraint, pod: Pod, cluster: ClusterState) -> Bools | None:
        """Return the rows that count for the constraint; None if all rows with its key do."""
        rows, labels = slice(0, len(cluster.known)), cluster.labels
        where: list[Bools] = []
        if self._all_keys:
            keys = {c.topology_key for c in self._constraints} - {constraint.topology_key}
            where += (labels.column(key)[rows] != ABSENT for key in keys)
        if constraint.honor_affinity:
            affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
            required = affinity and affinity.required_during_scheduling_ignored_during_execution
            if pod.spec.node_selector:
                where.append(labels.matches_all(pod.spec.node_selector, rows))
            if required:
                where.append(labels.matches_selector(required, rows))
        if constraint.honor_taints:
            where.append(cluster.taints.count(lambda taints: not tolerates(pod, taints), rows) == 0)
        return np.logical_and.reduce(where) if where else None


class Count:
    """The number of matching pods in each domain of one constraint, compared with the allowed number."""

    __slots__ = ("_lowest", "_sums", "spread")

    def __init__(self, spread: Spread, sums: Ints, lowest: int | None = None) -> None:
        self.spread = spread
        self._sums = sums
        # The lowest sum of all domains; None if it has to be computed.
        self._lowest = lowest

    def copy(self) -> "Count":
        # A change replaces the array, so copies can share it.
        return Count(self.spread, self._sums, self._lowest)

    def exceeded(self, nodes: Nodes) -> Bools:
        """Return the nodes on which the pod would exceed the allowed skew."""
        constraint, domains = self.spread.constraint, self.spread.domains
        if self._lowest is None:
            self._lowest = domains.lowest(self._sums)
        # With fewer domains than `min_domains`, the missing ones count as empty.
        lowest = self._lowest if domains.populated >= constraint.min_domains else 0
        highest = constraint.max_skew - constraint.self_match + lowest
        return domains.at(self._sums, nodes.rows) > highest

    def change(self, pod: Pod, row: int, number: int) -> None:
        """Count the pod `number` more times on the row, even if terminating, as in kube-scheduler."""
        domains = self.spread.domains
        if not domains.counts(row) or not selects(self.spread.constraint.selector, pod.metadata.labels):
            return
        domain = domains.ids[row]
        self._sums = self._sums.copy()
        before = int(self._sums[domain])
        self._sums[domain] += number
        if self._lowest is not None:
            # If the emptiest domain grows, another one may be the emptiest now.
            self._lowest = (
                None if before == self._lowest < before + number else min(self._lowest, before + number)
            )


class Counts:
    """The counts for all hard constraints of a pod."""

    def __init__(self, counts: list[Count]) -> None:
        self.counts = counts

    def clone(self) -> "Counts":
        return Counts([count.copy() for count in self.counts])

    def change(self, pod: Pod, other: Pod, row: int, number: int) -> None:
        if other.metadata.namespace == pod.metadata.namespace:
            for count in self.counts:
                count.change(other, row, number)
