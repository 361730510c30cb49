"""Binding through the API server."""

import pytest

from longshore.cluster import PodInfo
from longshore.framework import CycleState, Status
from longshore.framework.effects import Bind, Conflict, Failed, Gone, Outcome, Succeeded
from longshore.plugins import DefaultBinder
from longshore.testing import pod


def bound(outcome: Outcome) -> Status | None:
    binding = DefaultBinder().bind(CycleState(), PodInfo.of(pod("a")), "n1")
    assert next(binding) == Bind.of(pod("a"), "n1")
    with pytest.raises(StopIteration) as end:
        binding.send(outcome)
    answer: Status | None = end.value.value
    return answer


def test_a_bind_that_landed_is_a_success() -> None:
    assert bound(Succeeded()) is None


@pytest.mark.parametrize("kind", [Conflict, Gone, Failed])
def test_any_other_outcome_is_an_error_with_its_message(kind: type[Conflict | Gone | Failed]) -> None:
    assert bound(kind("the API server said no")) == Status.error("the API server said no")
