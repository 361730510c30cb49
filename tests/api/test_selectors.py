"""Which labels a selector selects."""

import pytest

from longshore.api import (
    InvalidSelector,
    LabelSelector,
    LabelSelectorRequirement,
    has_labels,
    selects,
)

WEB = {"app": "web", "tier": "front", "empty": ""}


def where(key: str, operator: str, *values: str) -> LabelSelector:
    return LabelSelector(match_expressions=(LabelSelectorRequirement(key, operator, values),))


def test_no_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert not selects(None, WEB)
    assert selects(LabelSelector(), WEB)
    assert selects(LabelSelector(), {})


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        (where("app", "In", "db", "web"), True),
        (where("app", "In", "db"), False),
        (where("absent", "In", "web"), False),
        (where("empty", "In", ""), True),
        (where("app", "NotIn", "db"), True),
        (where("app", "NotIn", "web"), False),
        (where("absent", "NotIn", "web"), True),
        (where("app", "Exists"), True),
        (where("empty", "Exists"), True),
        (where("absent", "Exists"), False),
        (where("app", "DoesNotExist"), False),
        (where("absent", "DoesNotExist"), True),
    ],
)
def test_each_operator_selects_by_its_own_rule(selector: LabelSelector, selected: bool) -> None:
    assert selects(selector, WEB) is selected


def test_all_parts_of_a_selector_must_hold() -> None:
    exists = LabelSelectorRequirement("tier", "Exists")
    absent = LabelSelectorRequirement("tier", "DoesNotExist")
    assert selects(LabelSelector({"app": "web"}, (exists,)), WEB)
    assert not selects(LabelSelector({"app": "db"}, (exists,)), WEB)
    assert not selects(LabelSelector({"app": "web"}, (exists, absent)), WEB)


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        (where("app", "Like", "w*"), "'Like' of 'app' is not an operator"),
        (where("app", ""), "'' of 'app' is not an operator"),
        (where("app", "In"), "In needs at least one value for 'app'"),
        (where("app", "NotIn"), "NotIn needs at least one value for 'app'"),
        (where("app", "Exists", "web"), "Exists takes no values, 'app' has ['web']"),
        (where("app", "DoesNotExist", "web"), "DoesNotExist takes no values, 'app' has ['web']"),
    ],
)
def test_an_invalid_requirement_is_named_in_the_error(selector: LabelSelector, text: str) -> None:
    with pytest.raises(InvalidSelector) as raised:
        selects(selector, WEB)
    assert text in str(raised.value)


def test_an_invalid_selector_is_found_even_if_the_rest_selects_nothing() -> None:
    selector = LabelSelector({"app": "db"}, (LabelSelectorRequirement("app", "Like"),))
    with pytest.raises(InvalidSelector):
        selects(selector, WEB)


def test_wanted_labels_must_be_present_with_their_values() -> None:
    assert has_labels({}, WEB)
    assert has_labels({"app": "web", "empty": ""}, WEB)
    assert not has_labels({"app": "db"}, WEB)
    assert not has_labels({"absent": ""}, WEB)
