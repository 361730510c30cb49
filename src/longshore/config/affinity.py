"""Reads the parts of pod specifications in arguments of plugins: node affinity and spread constraints."""

from longshore.api import (
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    TopologySpreadConstraint,
)
from longshore.api.names import is_label_value, is_qualified_name
from longshore.config.fields import Fields
from longshore.config.problems import quoted

_LABEL_KEY = "a label key such as app or example.com/app"
_LABEL_VALUE = "a text of at most 63 letters, digits, '-', '_' and '.'"
_SETS = ("In", "NotIn")
_PRESENCE = ("Exists", "DoesNotExist")
_COMPARISONS = ("Gt", "Lt")
_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES = ("Honor", "Ignore")
_INT64 = range(-(2**63), 2**63)


def read_node_affinity(fields: Fields) -> NodeAffinity:
    return NodeAffinity(
        required_during_scheduling_ignored_during_execution=fields.optional(
            "requiredDuringSchedulingIgnoredDuringExecution", _selector
        ),
        preferred_during_scheduling_ignored_during_execution=fields.each(
            "preferredDuringSchedulingIgnoredDuringExecution", _preferred
        ),
    )


def _selector(fields: Fields) -> NodeSelector:
    return NodeSelector(node_selector_terms=fields.each("nodeSelectorTerms", _term))


def _preferred(fields: Fields) -> PreferredSchedulingTerm:
    return PreferredSchedulingTerm(
        weight=fields.integer("weight", at_least=0), preference=fields.nested("preference", _term)
    )


def _term(fields: Fields) -> NodeSelectorTerm:
    return NodeSelectorTerm(
        match_expressions=fields.each("matchExpressions", _label_requirement),
        match_fields=fields.each("matchFields", _field_requirement),
    )


def _label_requirement(fields: Fields) -> NodeSelectorRequirement:
    key = fields.needed_text("key", _LABEL_KEY)
    if key and not is_qualified_name(key):
        fields.problem("key", f"must be {_LABEL_KEY}, found {quoted(key)}")
    operator = fields.needed_choice("operator", (*_SETS, *_PRESENCE, *_COMPARISONS)) or ""
    values = fields.texts("values", _LABEL_VALUE, is_label_value)
    if operator in _SETS and not fields.given("values"):
        fields.problem("values", f"{operator} needs at least one value")
    elif operator in _PRESENCE and fields.given("values"):
        fields.problem("values", f"{operator} takes no values; remove them")
    elif operator in _COMPARISONS and not (len(values) == 1 and _is_int64(values[0])):
        fields.problem("values", f"{operator} needs exactly one value, a whole number in quotation marks")
    return NodeSelectorRequirement(key=key, operator=operator, values=values)


def _field_requirement(fields: Fields) -> NodeSelectorRequirement:
    key = fields.text("key")
    operator = fields.needed_choice("operator", _SETS) or ""
    values = fields.texts("values")
    if len(values) != 1:
        fields.problem("values", "needs exactly one value")
    return NodeSelectorRequirement(key=key, operator=operator, values=values)


def _is_int64(text: str) -> bool:
    digits = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    return digits.isascii() and digits.isdigit() and len(digits) < 40 and int(text) in _INT64


def read_default_constraint(fields: Fields) -> TopologySpreadConstraint:
    """Read a default constraint. Its selector follows from the services and the owner of each pod."""
    key = fields.needed_text("topologyKey", _LABEL_KEY)
    if key and not is_qualified_name(key):
        fields.problem("topologyKey", f"must be {_LABEL_KEY}, found {quoted(key)}")
    if not fields.given("maxSkew"):
        fields.problem("maxSkew", "missing; it must be a whole number of at least 1")
    fields.refuse("labelSelector", "not allowed here: it follows from each pod's services and owner")
    return TopologySpreadConstraint(
        max_skew=fields.integer("maxSkew", at_least=1),
        topology_key=key,
        when_unsatisfiable=fields.needed_choice("whenUnsatisfiable", _ACTIONS) or "",
        min_domains=fields.integer("minDomains", at_least=1) or None,
        node_affinity_policy=fields.choice("nodeAffinityPolicy", _POLICIES),
        node_taints_policy=fields.choice("nodeTaintsPolicy", _POLICIES),
        match_label_keys=fields.texts("matchLabelKeys"),
    )
