"""The journal of changed rows."""

from longshore.cluster.journal import Journal


def journal() -> Journal:
    """A journal in which the node and the pods of row 1 changed, and only the pods of row 2."""
    changes = Journal()
    changes.pods_changed(1)
    changes.pods_changed(2)
    changes.node_changed(1)
    changes.pods_changed(1)
    return changes


def test_a_row_is_returned_once_and_with_its_node_if_that_changed() -> None:
    assert journal().rows_since(0) == {1: True, 2: False}


def test_a_reader_sees_only_what_changed_after_its_position() -> None:
    changes = journal()
    assert changes.rows_since(3) == {1: False}
    assert changes.rows_since(changes.position) == {}


def test_a_reader_that_has_seen_nothing_looks_at_all_rows() -> None:
    assert journal().rows_since(-1) is None


def test_a_reader_can_limit_the_number_of_changes() -> None:
    assert journal().rows_since(0, at_most=3) is None
    assert journal().rows_since(1, at_most=3) is not None


def test_after_everything_changed_all_readers_look_at_all_rows() -> None:
    changes = journal()
    before = changes.position
    changes.everything_changed()
    assert changes.rows_since(before) is None
    assert changes.rows_since(changes.position) == {}


def test_a_reader_that_is_very_far_behind_looks_at_all_rows() -> None:
    changes = journal()
    for row in range(200_000):
        changes.pods_changed(row)
    assert changes.rows_since(0) is None
    assert changes.rows_since(changes.position - 2) == {199_998: False, 199_999: False}
