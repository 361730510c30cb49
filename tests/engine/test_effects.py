"""Notes of events."""

from longshore.framework.effects import MAX_NOTE, RecordEvent
from longshore.testing import pod


def note_of(text: str) -> str:
    return RecordEvent.of(pod("a"), kind="Normal", reason="R", action="A", note=text).note


def test_a_note_of_the_maximum_length_is_not_cut() -> None:
    assert note_of("x" * MAX_NOTE) == "x" * MAX_NOTE


def test_a_longer_note_is_cut_and_marked() -> None:
    assert note_of("x" * (MAX_NOTE + 1)) == "x" * (MAX_NOTE - 4) + " ..."
