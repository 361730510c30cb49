"""The nodes that can reach a volume, or for which one can be provisioned: all at once, or a single one."""

import numpy as np

from longshore.api import (
    InvalidSelector,
    LabelSelector,
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PersistentVolume,
    TopologySelectorTerm,
    selects,
)
from longshore.cluster import Nodes
from longshore.cluster.arrays import Bools
from longshore.cluster.node_selectors import selects_node


def nodes_of(volume: PersistentVolume) -> NodeSelector | None:
    """Return a selector for the nodes that can reach the volume; None means all of them.

    Only labels count: kube-scheduler treats requirements on fields of the node as met.
    """
    affinity = volume.spec.node_affinity
    required = None if affinity is None else affinity.required
    if required is None:
        return None
    terms = required.node_selector_terms
    if not any(term.match_fields for term in terms):
        return required
    if any(term.match_fields and not term.match_expressions for term in terms):
        return None
    return NodeSelector(tuple(NodeSelectorTerm(term.match_expressions) for term in terms))


def reaches(node: Node, volume: PersistentVolume) -> bool:
    selector = nodes_of(volume)
    return selector is None or selects_node(selector, node)


class Places:
    """The nodes that match at least one of several selectors.

    There can be thousands of volumes and pools of single nodes, each with one label. Their labels are merged.
    """

    def __init__(self, *selectors: NodeSelector | None) -> None:
        self._everywhere = False
        self._terms: dict[NodeSelectorTerm, None] = {}
        self._values: dict[str, dict[str, None]] = {}
        for selector in selectors:
            self.add(selector)

    def add(self, selector: NodeSelector | None) -> None:
        """Add the nodes that match the selector; None means all nodes."""
        if selector is None:
            self._everywhere = True
            return
        for term in selector.node_selector_terms:
            needed = term.match_expressions
            if len(needed) == 1 and needed[0].operator == "In" and not term.match_fields:
                self.add_label(needed[0].key, needed[0].values)
            else:
                self._terms[term] = None

    def add_label(self, key: str, values: tuple[str, ...]) -> None:
        """Add the nodes whose label has one of the values."""
        found = self._values.get(key)
        if found is None:
            found = self._values[key] = {}
        for text in values:
            found[text] = None

    def where(self, nodes: Nodes) -> Bools:
        if self._everywhere:
            return np.ones(len(nodes), np.bool_)
        labels = (
            NodeSelectorTerm((NodeSelectorRequirement(key, "In", tuple(values)),))
            for key, values in self._values.items()
        )
        return nodes.cluster.labels.matches_selector(NodeSelector((*labels, *self._terms)), nodes.rows)


def allowed(topologies: tuple[TopologySelectorTerm, ...]) -> NodeSelector | None:
    """Return a selector for the nodes for which a storage class provisions volumes; None means all nodes."""
    if not topologies:
        return None
    return NodeSelector(
        tuple(
            NodeSelectorTerm(
                tuple(NodeSelectorRequirement(e.key, "In", e.values) for e in term.match_label_expressions)
            )
            for term in topologies
        )
    )


def labeled(selector: LabelSelector | None) -> NodeSelector | None:
    """Return a node selector for nodes with these labels. A missing or invalid selector matches none."""
    try:
        everything = selects(selector, {}) and not (selector and selector.match_expressions)
    except InvalidSelector:
        return NodeSelector()
    if selector is None:
        return NodeSelector()
    if everything and not selector.match_labels:
        return None
    equal = (NodeSelectorRequirement(key, "In", (value,)) for key, value in selector.match_labels.items())
    others = (NodeSelectorRequirement(r.key, r.operator, r.values) for r in selector.match_expressions)
    return NodeSelector((NodeSelectorTerm((*equal, *others)),))
