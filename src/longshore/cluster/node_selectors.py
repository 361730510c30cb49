"""Matches a node selector against one node object, which need not be in the cluster.

`LabelColumns` does the same for all rows at once; a test checks that the two agree.
"""

from longshore.api import Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from longshore.cluster.labels import NAME_FIELD, integer


def selects_node(selector: NodeSelector, node: Node) -> bool:
    """Whether at least one term of the selector holds for the node."""
    return any(_holds(term, node) for term in selector.node_selector_terms)


def _holds(term: NodeSelectorTerm, node: Node) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    labels = node.metadata.labels
    return all(
        _meets(requirement, labels.get(requirement.key)) for requirement in term.match_expressions
    ) and all(
        requirement.key == NAME_FIELD
        and requirement.operator in ("In", "NotIn")
        and _meets(requirement, node.metadata.name)
        for requirement in term.match_fields
    )


def _meets(requirement: NodeSelectorRequirement, value: str | None) -> bool:
    values = requirement.values
    match requirement.operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" if len(values) == 1 and value is not None:
            amount, bound = integer(value), integer(values[0])
            if amount is None or bound is None:
                return False
            return amount > bound if requirement.operator == "Gt" else amount < bound
    return False
