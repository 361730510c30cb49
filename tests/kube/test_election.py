"""The rules of the election, in virtual time: never two leaders, and never none for long."""

import random
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kube.lease_world import TIMING, BadNetwork, Candidate, Network, World

from longshore.errors import UserError
from longshore.kube.election import Election, LeaseRecord, Over, Read, Timing, Wait, Write

PERIOD = TIMING.retry_period


class TestTiming:
    @pytest.mark.parametrize(
        ("wrong", "expected"),
        [
            ({"retry_period": 0.0}, "retry period of the lease is 0 s: it must be positive"),
            ({"retry_period": -1.0}, "must be positive"),
            ({"renew_deadline": 2.4}, "must be more than 1.2 times its retry period of 2 s"),
            ({"lease_duration": 10.0}, "must be more than its renew deadline of 10 s"),
        ],
    )
    def test_unsafe_times_are_rejected(self, wrong: dict[str, float], expected: str) -> None:
        with pytest.raises(UserError, match=expected):
            Timing(**wrong)


def held(holder: str, *, version: str = "1", duration: float = 15.0, transitions: int = 0) -> LeaseRecord:
    return LeaseRecord(version=version, holder=holder, duration=duration, transitions=transitions)


def after(election: Election, *, seen: LeaseRecord | None, now: float) -> Any:
    """The step that follows after this record is read."""
    assert election.next(now) == Read()
    election.observed(seen, now=now)
    return election.next(now)


def leading(election: Election, *, now: float = 0.0) -> Election:
    """Return the same candidate after it has created the lease."""
    assert isinstance(after(election, seen=None, now=now), Write)
    election.written(held("me"), sent=now, now=now)
    assert election.leads
    return election


@pytest.fixture
def election() -> Election:
    return Election("me", TIMING)


class TestCandidate:
    def test_a_candidate_creates_a_missing_lease(self, election: Election) -> None:
        step = after(election, seen=None, now=0.0)
        assert step == Write(version=None, holder="me", duration=15, transitions=0, acquires=True)

    def test_a_candidate_takes_a_free_lease_immediately(self, election: Election) -> None:
        step = after(election, seen=held("", duration=1.0, transitions=4), now=0.0)
        assert step == Write(version="1", holder="me", duration=15, transitions=5, acquires=True)

    def test_a_standby_reads_again_every_period_while_another_renews(self, election: Election) -> None:
        for number in range(20):
            now = number * PERIOD
            assert after(election, seen=held("other", version=str(number)), now=now) == Wait(now + PERIOD)

    def test_a_standby_takes_over_after_the_duration_of_the_holder_without_a_write(
        self, election: Election
    ) -> None:
        assert after(election, seen=held("other", duration=3.0), now=100.0) == Wait(102.0)
        assert after(election, seen=held("other", duration=3.0), now=102.0) == Wait(103.0)
        step = after(election, seen=held("other", duration=3.0), now=103.0)
        assert step == Write(version="1", holder="me", duration=15, transitions=1, acquires=True)

    def test_a_standby_waits_its_own_duration_if_the_holder_specified_none(self, election: Election) -> None:
        after(election, seen=held("other", duration=0.0), now=0.0)
        assert after(election, seen=held("other", duration=0.0), now=14.9) == Wait(15.0)

    def test_a_deleted_lease_is_not_taken_before_it_would_have_expired(self, election: Election) -> None:
        after(election, seen=held("other"), now=0.0)
        assert after(election, seen=None, now=14.0) == Wait(15.0)
        assert isinstance(after(election, seen=None, now=15.0), Write)

    def test_after_a_lost_race_the_lease_is_read_again(self, election: Election) -> None:
        after(election, seen=held(""), now=0.0)
        election.failed(sent=0.0, now=0.1)
        assert election.next(0.1) == Wait(PERIOD)
        assert after(election, seen=held("other", version="2"), now=PERIOD) == Wait(2 * PERIOD)

    def test_a_write_with_a_lost_response_is_recognized(self, election: Election) -> None:
        after(election, seen=held("", transitions=7), now=0.0)
        election.failed(sent=0.0, now=3.0)
        step = after(election, seen=held("me", version="2", transitions=8), now=3.0)
        assert step == Write(version="2", holder="me", duration=15, transitions=8, acquires=False)

    def test_a_response_that_took_too_long_does_not_make_a_leader(self, election: Election) -> None:
        after(election, seen=None, now=0.0)
        election.written(held("me"), sent=0.0, now=10.0)
        assert not election.leads
        assert isinstance(election.next(10.0), Write)

    def test_the_duration_is_rounded_up_for_others(self) -> None:
        election = Election("me", Timing(lease_duration=1.5, renew_deadline=1.2, retry_period=0.5))
        assert after(election, seen=None, now=0.0).duration == 2


class TestHolder:
    def test_the_holder_renews_every_period_without_reading(self, election: Election) -> None:
        leading(election)
        assert election.next(0.1) == Wait(PERIOD)
        assert election.next(PERIOD) == Write(
            version="1", holder="me", duration=15, transitions=0, acquires=False
        )

    def test_the_deadline_counts_from_before_the_renewal_was_sent(self, election: Election) -> None:
        leading(election)
        election.written(held("me", version="2"), sent=2.0, now=5.0)
        assert election.holds(11.9)
        assert not election.holds(12.0)

    def test_the_holder_stops_at_the_deadline(self, election: Election) -> None:
        leading(election)
        for sent in (2.0, 4.0, 6.0, 8.0):
            assert not isinstance(election.next(sent), Wait)
            election.failed(sent=sent, now=sent)
        assert election.next(9.9) == Wait(10.0)
        assert election.next(10.0) == Over()
        assert not election.leads

    def test_the_holder_stops_immediately_when_another_holds_the_lease(self, election: Election) -> None:
        leading(election)
        election.failed(sent=2.0, now=2.0)
        assert after(election, seen=held("other", version="2"), now=4.0) == Over()
        assert not election.holds(4.0)

    def test_the_holder_writes_a_deleted_lease_again(self, election: Election) -> None:
        leading(election)
        election.failed(sent=2.0, now=2.0)
        assert after(election, seen=None, now=4.0).version is None
        assert election.holds(4.0)


class TestRelease:
    def test_a_lease_is_released_after_the_holder_stops_acting(self, election: Election) -> None:
        leading(election)
        election.release(now=0.5)
        assert not election.holds(0.5)
        assert election.next(0.5) == Write(version="1", holder="", duration=1, transitions=0, acquires=True)
        election.written(held("", version="2"), sent=0.5, now=0.5)
        assert election.next(0.5) == Over()

    def test_a_release_reads_first_if_the_last_renewal_failed(self, election: Election) -> None:
        leading(election)
        election.failed(sent=2.0, now=2.0)
        election.release(now=2.5)
        assert after(election, seen=held("me", version="2"), now=2.5).version == "2"

    def test_a_lease_that_another_holds_is_not_released(self, election: Election) -> None:
        leading(election)
        election.failed(sent=2.0, now=2.0)
        election.release(now=2.5)
        assert after(election, seen=held("other", version="2"), now=2.5) == Over()

    def test_a_standby_has_nothing_to_release(self, election: Election) -> None:
        after(election, seen=held("other"), now=0.0)
        election.release(now=0.5)
        assert election.next(0.5) == Over()

    def test_a_lease_that_may_have_become_ours_is_released(self, election: Election) -> None:
        after(election, seen=held(""), now=0.0)
        election.failed(sent=0.0, now=3.0)
        election.release(now=3.0)
        assert after(election, seen=held("me", version="2"), now=3.0).holder == ""


class TestWorld:
    """Several candidates and one server. `World.run` checks at every event that no two hold the lease."""

    @settings(max_examples=300, deadline=None)
    @given(
        seed=st.integers(0, 2**32),
        trouble=st.floats(0.0, 0.7),
        clocks=st.lists(
            # A clock that is 15 % too fast or too slow is much worse than on any real machine.
            st.tuples(st.floats(-1e6, 1e6), st.floats(0.85, 1.15)),
            min_size=2,
            max_size=4,
        ),
        changes=st.lists(
            st.tuples(st.floats(0.0, 200.0), st.integers(0, 3), st.sampled_from(("kill", "stop"))), max_size=4
        ),
    )
    def test_there_are_never_two_holders(
        self,
        seed: int,
        trouble: float,
        clocks: list[tuple[float, float]],
        changes: list[tuple[float, int, str]],
    ) -> None:
        source = random.Random(seed)
        world = World(BadNetwork(source, trouble=trouble))
        for number, (offset, rate) in enumerate(clocks):
            world.join(Candidate(f"c{number}", offset=offset, rate=rate))

        def replace(number: int, how: str) -> None:
            candidate = world.candidates[number % len(world.candidates)]
            (world.kill if how == "kill" else world.stop)(candidate)
            world.join(Candidate(f"c{len(world.candidates)}", offset=source.uniform(-1e6, 1e6)))

        for when, number, how in changes:
            world.at(when, partial(replace, number, how))
        world.run(until=250.0)
        # Without faults there is a leader again, at most after the longest delay and one lease duration.
        world.network = Network()
        world.join(Candidate("last"))
        world.run(until=250.0 + 2 * 25.0 + 2 * TIMING.lease_duration + 4 * PERIOD)
        assert world.holder is not None

    @given(phase=st.floats(0.0, 3 * PERIOD), moment=st.floats(20.0, 30.0))
    def test_a_standby_leads_soon_after_the_holder_was_killed(self, phase: float, moment: float) -> None:
        world, first, second = self.pair(phase)
        world.run(until=moment)
        world.kill(first)
        world.run(until=100.0)
        assert second.led_at is not None
        assert second.led_at - moment < TIMING.lease_duration + PERIOD + 0.1
        assert world.server.record is not None
        assert world.server.record.transitions == 1

    @given(phase=st.floats(0.0, 3 * PERIOD), moment=st.floats(20.0, 30.0))
    def test_a_standby_leads_at_its_next_read_after_a_clean_stop(self, phase: float, moment: float) -> None:
        world, first, second = self.pair(phase)
        world.run(until=moment)
        world.stop(first)
        world.run(until=100.0)
        assert second.led_at is not None
        assert second.led_at - moment < PERIOD + 0.1

    def pair(self, phase: float) -> tuple[World, Candidate, Candidate]:
        world = World()
        first = world.join(Candidate("first"))
        world.run(until=10.0 + phase)
        return world, first, world.join(Candidate("second"))
