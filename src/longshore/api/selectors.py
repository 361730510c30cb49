"""Selectors of labels: which objects one means, as the API server and its controllers read it."""

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
    """A selector that the API server would not take."""


def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """No selector selects nothing, an empty one everything.

    Raises `InvalidSelector`, whatever the labels are, when a requirement makes no sense.
    """
    if selector is None:
        return False
    expressions = selector.match_expressions
    for requirement in expressions:
        _check(requirement)
    return has_labels(selector.match_labels, labels) and all(_meets(r, labels) for r in expressions)


def has_labels(wanted: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """All of the wanted labels are there; none wanted is met by every object."""
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
            f"label selector: {operator!r} of {key!r} is no operator; use In, NotIn, Exists or DoesNotExist"
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
