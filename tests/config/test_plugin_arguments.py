"""Arguments that plugins declare as structs: read strictly, with all problems at once."""

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec
import pytest

from longshore.config.plugin_arguments import InvalidArguments, read_plugin_arguments


class Limits(msgspec.Struct, frozen=True, rename="camel"):
    soft_limit: Annotated[int, msgspec.Meta(ge=0)] = 1
    hard_limit: float = 2.0


class Args(msgspec.Struct, frozen=True, rename="camel"):
    share: Annotated[int, msgspec.Meta(ge=1, le=100)] = 40
    when_missing: Literal["Fail", "Ignore"] = "Fail"
    factor: str | float = "1.5"
    node_pool: Annotated[int, msgspec.Meta(ge=0)] | None = None
    zones: tuple[str, ...] = ()
    addresses: dict[str, str] = {}
    limits: Limits = Limits()
    verbose: bool = False


def read(given: object) -> Args:
    return read_plugin_arguments(Args, given, plugin="Packing")


def problems(given: object) -> tuple[str, ...]:
    with pytest.raises(InvalidArguments) as caught:
        read(given)
    assert str(caught.value) == f"arguments of Packing: {'; '.join(caught.value.problems)}"
    return caught.value.problems


@pytest.mark.parametrize("given", [None, {}, {"share": None, "limits": {"softLimit": None}}])
def test_an_argument_that_is_absent_or_null_has_its_default(given: object) -> None:
    assert read(given) == Args()


def test_arguments_are_read_by_their_names_in_configurations() -> None:
    given = {
        "apiVersion": "example.com/v1",
        "kind": "PackingArgs",
        "share": 7,
        "whenMissing": "Ignore",
        "factor": 2.5,
        "nodePool": 3,
        "zones": ["a", "b"],
        "addresses": {"x/y": "z:1"},
        "limits": {"softLimit": 4, "hardLimit": 5},
        "verbose": True,
    }
    assert read(given) == Args(7, "Ignore", 2.5, 3, ("a", "b"), {"x/y": "z:1"}, Limits(4, 5.0), True)


def test_arguments_that_were_read_are_taken_as_they_are() -> None:
    args = Args(share=3)
    assert read(args) is args


def test_all_problems_are_found_at_once_and_each_has_its_path() -> None:
    given = {
        "share": 101,
        "whenMissing": "Panic",
        "factor": [],
        "nodePool": -1,
        "zones": ["a", 7],
        "addresses": {"x/y": 5},
        "limits": {"softlimit": 1, "hardLimit": "high"},
        "verbose": "yes",
        "speed": 3,
    }
    assert problems(given) == (
        "speed: unknown field",
        "share: must be a whole number from 1 to 100, found the number 101",
        'whenMissing: must be Fail or Ignore, found the text "Panic"',
        "factor: must be a text or a number, found a list",
        "nodePool: must be a whole number of at least 0, found the number -1",
        "zones[1]: must be a text, found the number 7",
        'addresses["x/y"]: must be a text, found the number 5',
        'limits.softlimit: unknown field; did you mean "softLimit"?',
        'limits.hardLimit: must be a number, found the text "high"',
        'verbose: must be true or false, found the text "yes"',
    )


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ([1], "must be a mapping, found a list"),
        ({"limits": 3}, "limits: must be a mapping, found the number 3"),
        ({"zones": "a"}, 'zones: must be a list, found the text "a"'),
        ({"share": 0.5}, "share: must be a whole number from 1 to 100, found the number 0.5"),
        ({"share": True}, "share: must be a whole number from 1 to 100, found true"),
    ],
)
def test_a_value_of_the_wrong_type(given: object, problem: str) -> None:
    assert problems(given) == (problem,)


def test_a_check_is_made_once_the_types_are_right() -> None:
    checked: list[Args] = []

    def check(args: Args) -> Iterator[tuple[str, str]]:
        checked.append(args)
        yield "limits.softLimit", "must be below hardLimit"

    with pytest.raises(InvalidArguments, match=r"^arguments of Packing: share: must be a whole number"):
        read_plugin_arguments(Args, {"share": "x"}, plugin="Packing", check=check)
    assert checked == []
    with pytest.raises(InvalidArguments, match=r"^arguments of Packing: limits.softLimit: must be below"):
        read_plugin_arguments(Args, {"share": 2}, plugin="Packing", check=check)
    assert checked == [Args(share=2)]
