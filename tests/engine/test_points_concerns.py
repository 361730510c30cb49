"""Plugins with `concerns`: they are not called for other pods at any point."""

import pytest
from tests.engine.stage import Stage, room

from longshore.cluster import PodInfo
from longshore.framework import CycleState, Status
from longshore.testing import PodBuilder, pod

A = pod("a").requests(cpu="1")


class Ledger:
    """Has only points after the node is chosen."""

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
def test_a_plugin_of_reserve_only_is_asked_whether_it_is_concerned(
    asked: PodBuilder, called: list[str]
) -> None:
    calls: list[str] = []
    stage = Stage(Ledger(calls))
    stage.create(room("n1"), asked)
    stage.run(until=0.5)
    assert calls == called


def test_unreserve_is_not_called_for_a_plugin_that_is_not_concerned() -> None:
    calls: list[str] = []

    class Breaks:
        name = "Breaks"

        def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
            return Status.error("broken")

    stage = Stage(Ledger(calls), Breaks())
    stage.create(room("n1"), A)
    stage.run(until=0.5)
    assert calls == ["concerns"]


def test_concerns_is_called_once_for_pods_of_one_shape() -> None:
    calls: list[str] = []
    stage = Stage(Ledger(calls))
    stage.create(room("n1"), A, pod("b").requests(cpu="1"))
    stage.run(until=0.5)
    assert calls == ["concerns"]
