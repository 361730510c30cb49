"""The health of a running scheduler."""

import asyncio
from typing import cast

import pytest

from longshore.live.follower import Follower
from longshore.live.vitals import Vitals


class _Follower:
    """A follower with only the attributes that the health check reads."""

    def __init__(self) -> None:
        self.ready = True
        self.leads = True
        self.mirrors = ()


class _Patient:
    def __init__(self, *, lease_name: str = "longshore") -> None:
        self.now = 100.0
        self.follower = _Follower()
        self.stop = asyncio.Event()
        self.vitals = Vitals(
            cast(Follower, self.follower), lease_name=lease_name, stop=self.stop, clock=lambda: self.now
        )

    @property
    def complaints(self) -> set[str]:
        return {name for name, check in {**self.vitals.live, **self.vitals.ready}.items() if check()}


@pytest.fixture
def patient() -> _Patient:
    return _Patient()


def test_a_leader_with_synced_watches_is_healthy(patient: _Patient) -> None:
    assert patient.complaints == set()


def test_a_loop_without_a_turn_is_dead_after_a_while(patient: _Patient) -> None:
    patient.now += 19
    assert patient.complaints == set()
    patient.now += 2
    assert patient.complaints == {"loop"}


async def test_a_loop_that_has_its_turns_is_alive(patient: _Patient) -> None:
    patient.now += 1000
    async with patient.vitals.beating():
        await asyncio.sleep(0)
        assert patient.complaints == set()


def test_a_standby_is_ready_to_take_over(patient: _Patient) -> None:
    patient.follower.leads = False
    assert patient.complaints == set()


def test_a_leader_that_did_not_renew_its_lease_is_dead(patient: _Patient) -> None:
    assert patient.complaints == set()
    patient.follower.leads = False
    assert patient.complaints == {"leaderElection"}


def test_a_leader_that_stops_gives_its_lease_back_and_is_alive(patient: _Patient) -> None:
    assert patient.complaints == set()
    patient.stop.set()
    patient.follower.leads = False
    assert patient.complaints == {"shutdown"}


def test_without_leader_election_there_is_no_lease_to_renew() -> None:
    assert "leaderElection" not in _Patient(lease_name="").vitals.live


def test_a_scheduler_before_its_first_lists_is_not_ready(patient: _Patient) -> None:
    patient.follower.ready = False
    assert patient.complaints == {"sched-handler-sync"}
