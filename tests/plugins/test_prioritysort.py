"""The order of the queue."""

from longshore.plugins import PrioritySort
from longshore.testing import pod

KEY = PrioritySort().sort_key


def test_higher_priority_goes_first_however_late_it_came() -> None:
    assert KEY(pod("late").priority(10), 9.0) < KEY(pod("early").priority(1), 1.0)


def test_among_equals_the_one_that_waits_longer_goes_first() -> None:
    assert KEY(pod("a"), 1.0) < KEY(pod("b"), 2.0)


def test_a_negative_priority_comes_after_no_priority() -> None:
    assert KEY(pod("a"), 2.0) < KEY(pod("b").priority(-1), 1.0)
