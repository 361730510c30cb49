"""The times at which sets are looked at again."""

import hypothesis.strategies as st
from hypothesis import given, settings

from longshore.podset.due_sets import DueSets, SetKey

A, B = ("default", "a"), ("default", "b")


def test_the_earliest_time_counts() -> None:
    agenda = DueSets()
    agenda.put(A, 5.0)
    agenda.put(A, 9.0)
    agenda.put(A, 3.0)
    assert agenda.deadline == 3.0
    assert agenda.due(2.9) == []
    assert agenda.due(3.0) == [A]
    assert agenda.deadline is None


def test_a_set_that_is_due_is_taken_off_and_may_be_put_on_again() -> None:
    agenda = DueSets()
    agenda.put(A, 1.0)
    agenda.put(B, 2.0)
    assert agenda.due(1.0) == [A]
    agenda.put(A, 1.0)
    assert agenda.due(5.0) == [A, B]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([A, B]), st.integers(0, 9), st.booleans())))
def test_the_agenda_agrees_with_a_table_of_times(steps: list[tuple[SetKey, int, bool]]) -> None:
    agenda, table = DueSets(), dict[SetKey, float]()
    for key, at, look in steps:
        if look:
            expected = sorted((due, key) for key, due in table.items() if due <= at)
            assert agenda.due(at) == [key for _, key in expected]
            table = {key: due for key, due in table.items() if due > at}
        else:
            agenda.put(key, at)
            table[key] = min(at, table.get(key, at))
        assert agenda.deadline == min(table.values(), default=None)
