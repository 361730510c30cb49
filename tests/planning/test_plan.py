"""A plan as a value."""

import msgspec
import pytest

from longshore.planning import Assignment, LeftOut, Plan

WEB = Assignment("default/web", "uid-web", "n1")
DB = Assignment("default/db", "uid-db", "n2")


def test_the_node_of_a_pod_is_found_by_its_uid() -> None:
    plan = Plan((WEB, DB))
    assert plan.node_of("uid-db") == "n2"
    assert plan.node_of("uid-of-another") is None


def test_a_plan_that_leaves_out_a_pod_is_not_complete() -> None:
    assert Plan((WEB,)).complete
    assert not Plan((WEB,), (LeftOut("default/db", "uid-db", "no room"),)).complete


@pytest.mark.parametrize(
    ("objective", "bound", "gap"),
    [(0.8, None, None), (0.8, 0.6, 0.25), (0.8, 0.8, 0.0), (0.0, 0.0, 0.0), (0.5, 0.6, 0.0)],
)
def test_the_gap_is_the_largest_possible_saving_as_a_share_of_the_cost(
    objective: float, bound: float | None, gap: float | None
) -> None:
    assert Plan((WEB,), (), objective, bound).gap == (None if gap is None else pytest.approx(gap))


def test_a_plan_survives_being_written_and_read() -> None:
    plan = Plan((WEB, DB), (LeftOut("default/x", "uid-x", "no room"),), 0.5, 0.25, "elsewhere", 0.1)
    assert plan.node_of("uid-web") == "n1"
    assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan
