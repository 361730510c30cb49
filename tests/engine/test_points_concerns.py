"""Plugins that say which pods they have to do with: at no point they are called for the others."""

import pytest
from tests.engine.stage import Stage, room

from longshore.cluster import PodInfo
from longshore.framework import CycleState, Status
from longshore.testing import PodBuilder, pod

A = pod("a").requests(cpu="1")


class Ledger:
    """Has a say once the node is chosen, and none before."""

    name = "Ledger"

    def __init__(self, calls: list[str]) -> None:
        self.calls = calls

    def concerns(self, pod: PodInfo) -> bool:
        self.calls.append("concerns")
        return "entered" in pod.labels

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        self.calls.append("reserve")

    def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        self.calls.append("unreserve")

    def permit(self, state: CycleState, pod: PodInfo, node: str) -> None:
        self.calls.append("permit")

    def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        self.calls.append("pre_bind")
        return Status.error("no ink")


@pytest.mark.parametrize(
    ("asked", "called"),
    [
        (A, ["concerns"]),
        (A.labels(entered="yes"), ["concerns", "reserve", "permit", "pre_bind", "unreserve"]),
    ],
)
def test_a_plugin_that_comes_into_it_late_is_asked_whether_it_is_concerned(
    asked: PodBuilder, called: list[str]
) -> None:
    calls: list[str] = []
    stage = Stage(Ledger(calls))
    stage.create(room("n1"), asked)
    stage.run(until=0.5)
    assert calls == called


def test_one_that_is_not_concerned_is_not_told_when_another_has_all_undone() -> None:
    calls: list[str] = []

    class Breaks:
        name = "Breaks"

        def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
            return Status.error("broken")

    stage = Stage(Ledger(calls), Breaks())
    stage.create(room("n1"), A)
    stage.run(until=0.5)
    assert calls == ["concerns"]


def test_a_plugin_is_asked_once_for_pods_that_are_alike() -> None:
    calls: list[str] = []
    stage = Stage(Ledger(calls))
    stage.create(room("n1"), A, pod("b").requests(cpu="1"))
    stage.run(until=0.5)
    assert calls == ["concerns"]
