"""Label selectors: which objects they select, by the rules of the API server and its controllers."""

from collections.abc import Mapping

from longshore.api.meta import ApiStruct


class LabelSelectorRequirement(ApiStruct):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(ApiStruct):
    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class InvalidSelector(ValueError):
    """A selector that the API server would not accept."""


def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether the selector matches the labels. None matches nothing; an empty selector matches everything.

    Raises `InvalidSelector` if any requirement is invalid, whatever the labels are.
    """
    if selector is None:
        return False
    expressions = selector.match_expressions
    for requirement in expressions:
        _check(requirement)
    return has_labels(selector.match_labels, labels) and all(_meets(r, labels) for r in expressions)


def has_labels(wanted: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether all of the wanted labels are present; always true if none are wanted."""
    return all(labels.get(key) == value for key, value in wanted.items())


def _check(requirement: LabelSelectorRequirement) -> None:
    key, operator, values = requirement.key, requirement.operator, requirement.values
    if operator in ("In", "NotIn"):
        if not values:
            raise InvalidSelector(f"label selector: {operator} needs at least one value for {key!r}")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            raise InvalidSelector(f"label selector: {operator} takes no values, {key!r} has {list(values)}")
    else:
        raise InvalidSelector(
            f"label selector: {operator!r} of {key!r} is not an operator; "
            "use In, NotIn, Exists or DoesNotExist"
        )


def _meets(requirement: LabelSelectorRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case _:
            return value is None
